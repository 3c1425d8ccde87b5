# frozen_string_literal: true

# Books an amount once for each occurrence, in SQLite.
#
#   HOURBELL_API_URL=... HOURBELL_QUEUE_URL=... EFFECTS=books.db ruby main.rb

require 'sqlite3'

require_relative 'hourbell'

$stdout.sync = true

def open_books
  books = SQLite3::Database.new(ENV.fetch('EFFECTS'))
  # Not busy_timeout: it waits in C and stops all threads of Ruby, so that neither the one
  # that holds the lock goes on, nor the heartbeats.
  books.busy_handler do |count|
    sleep(0.01)
    count < 3_000
  end
  yield books
ensure
  books&.close
end

# The occurrence's key and its effect in one transaction: both are stored, or neither.
def book_once(occurrence_id, account)
  open_books do |books|
    books.transaction(:immediate) do
      books.execute('INSERT INTO hourbell_done VALUES (?) ON CONFLICT DO NOTHING', [occurrence_id])
      books.execute('INSERT INTO books VALUES (?, ?)', [occurrence_id, account]) if books.changes == 1
    end
  end
end

consumer = Hourbell::Consumer.new(
  api_url: ENV.fetch('HOURBELL_API_URL'),
  queue_url: ENV.fetch('HOURBELL_QUEUE_URL'),
  service: ENV.fetch('HOURBELL_API_SERVICE', 'execute-api'),
  lease_seconds: Integer(ENV.fetch('HOURBELL_LEASE_SECONDS', '60'))
)

consumer.handler('report') do |event, work|
  order = event['data']['payload']
  puts "working #{event['id']}"
  raise 'the bank does not answer' if work.attempt && work.attempt <= order.fetch('fails', 0)

  sleep(order.fetch('seconds', 0))
  # Work that takes its time looks whether it should still go on.
  raise 'stopped' if work.cancel_requested || work.lease_lost

  book_once(event['id'], order['account'])
  puts "booked #{event['id']}"
  sleep(order.fetch('seconds', 0))
end

open_books do |books|
  books.execute('CREATE TABLE IF NOT EXISTS hourbell_done (occurrence_id TEXT PRIMARY KEY)')
  books.execute('CREATE TABLE IF NOT EXISTS books (occurrence_id TEXT, account TEXT)')
end
consumer.run
