# frozen_string_literal: true

# A consumer in Ruby whose handler raises whatever the payload names. Its pauses last
# PAUSES seconds, if that is set.

require_relative '../../examples/ruby/hourbell'

# An error that cannot say what it is.
class Mute < StandardError
  def message
    raise ArgumentError, 'nobody knows'
  end
end

def deeper
  deeper + 1
end

RAISED = {
  'script' => -> { raise NotImplementedError },
  'stack' => -> { deeper },
  'thrown' => -> { throw :nowhere },
  'mute' => -> { raise Mute },
  'soon' => -> { raise Hourbell::Throttled.new('busy', retry_after: 'soon') },
  'forever' => -> { raise Hourbell::Throttled.new('busy', retry_after: Float::INFINITY) },
  'never' => -> { raise Hourbell::Throttled.new('busy', retry_after: Float::NAN) },
  'permanent' => -> { raise Hourbell::Permanent, 'no' }
}.freeze

pauses = ENV['PAUSES']
Hourbell.define_singleton_method(:back_off) { |*, **| Float(pauses) } if pauses

consumer = Hourbell::Consumer.new(
  api_url: ENV.fetch('HOURBELL_API_URL'),
  queue_url: ENV.fetch('HOURBELL_QUEUE_URL')
)
consumer.handler('report') do |event, _work|
  raised = event['data']['payload']['thrown']
  RAISED.fetch(raised).call if raised
end
consumer.run
