# frozen_string_literal: true

# A consumer of Hourbell's messages: receive, claim, work with heartbeats, complete or
# fail, delete. docs/consumers.md explains each step.
#
# Of AWS it needs the signer only (Debian: ruby-aws-sigv4); the queue is called in its
# JSON protocol, as the worker routes are.

require 'aws-sigv4'
require 'json'
require 'net/http'
require 'securerandom'
require 'socket'

module Hourbell
  # No further attempt would succeed.
  class Permanent < StandardError; end

  # The target asks for patience, for `retry_after` seconds if it says so.
  class Throttled < StandardError
    attr_reader :retry_after

    def initialize(message = nil, retry_after: nil)
      super(message)
      @retry_after = retry_after
    end
  end

  # Nobody answered, or asked to be called again.
  class NoAnswer < StandardError; end

  # The consumer is to end.
  class Stop < StandardError; end

  # A whole request was refused, and would be again.
  class Refused < StandardError
    attr_reader :status

    def initialize(message, status = nil)
      super(message)
      @status = status
    end
  end

  module_function

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # How long to wait after so many failures: exponential, with full jitter.
  def back_off(failures, cap: 5.0)
    rand * [cap, 0.2 * (2**[failures, 20].min)].min
  end

  # Signed HTTP to one address.
  class Client
    AGAIN = [408, 425, 429].freeze

    def initialize(url, service, timeout)
      @url = url.chomp('/')
      @timeout = timeout
      @signer = Aws::Sigv4::Signer.new(
        service: service,
        region: ENV.fetch('AWS_REGION'),
        access_key_id: ENV.fetch('AWS_ACCESS_KEY_ID'),
        secret_access_key: ENV.fetch('AWS_SECRET_ACCESS_KEY'),
        session_token: ENV['AWS_SESSION_TOKEN']
      )
    end

    # Send one request, once; return the answer.
    def post(path, document, headers)
      uri = URI(@url + path)
      body = JSON.generate(document)
      signature = @signer.sign_request(http_method: 'POST', url: uri.to_s, headers: headers, body: body)
      response = send_to(uri, body, headers.merge(signature.headers))
      status = response.code.to_i
      return parsed(path, response.body) if status == 200

      message = "#{path}: HTTP #{status} #{response.body.to_s[0, 200]}"
      raise NoAnswer, message if status >= 500 || AGAIN.include?(status)

      raise Refused.new(message, status)
    end

    private

    def parsed(path, text)
      JSON.parse(text)
    rescue JSON::ParserError
      raise NoAnswer, "#{path}: no JSON"
    end

    def send_to(uri, body, headers)
      Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https',
                                          open_timeout: 3, read_timeout: @timeout, max_retries: 0) do |http|
        http.post(uri.request_uri, body, headers)
      end
    rescue SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError,
           Net::ProtocolError, Net::HTTPBadResponse, Zlib::Error => e
      raise NoAnswer, "#{uri.path}: #{e.message}"
    end
  end

  # The queue.
  class Queue
    # Longer than a receive waits.
    TIMEOUT = 30

    def initialize(url)
      endpoint = ENV['AWS_ENDPOINT_URL_SQS'] || ENV['AWS_ENDPOINT_URL'] || url[%r{\Ahttps?://[^/]+}]
      @url = url
      @client = Client.new(endpoint, 'sqs', TIMEOUT)
    end

    def receive
      answer = call('ReceiveMessage', MaxNumberOfMessages: 10, WaitTimeSeconds: 20)
      answer['Messages'] || []
    end

    # What is not deleted comes again, and is skipped then.
    def delete(receipts)
      in_tens('DeleteMessageBatch', receipts, {})
    rescue NoAnswer, Refused => e
      warn "delete: #{e.message}"
    end

    def hide(receipts, seconds)
      in_tens('ChangeMessageVisibilityBatch', receipts, { VisibilityTimeout: seconds })
    end

    private

    def in_tens(action, receipts, members)
      receipts.each_slice(10) do |some|
        entries = some.each_with_index.map do |receipt, place|
          { Id: place.to_s, ReceiptHandle: receipt }.merge(members)
        end
        call(action, Entries: entries)
      end
    end

    def call(action, **members)
      headers = { 'Content-Type' => 'application/x-amz-json-1.0', 'X-Amz-Target' => "AmazonSQS.#{action}" }
      @client.post('/', { QueueUrl: @url, **members }, headers)
    end
  end

  # A message at work, with its copies in one receive.
  Work = Struct.new(:event, :tracked, :token, :receipts, :attempt, :lease_ends,
                    :cancel_requested, :lease_lost, :over, keyword_init: true) do
    def item
      { occurrence_id: event['id'], lease_token: token }
    end

    # Add a copy; the latest send's is what is worked on.
    def add(copy, receipt)
      receipts << receipt
      self.event = copy if copy['data']['send'] > event['data']['send']
    end
  end

  # Receives batches of up to ten messages, and works on each batch at once, a thread
  # for each.
  class Consumer
    DUE = 'com.hourbell.occurrence.due.v1'
    TEST = 'com.hourbell.handler.test.v1'
    ID = /\Asch[0-9a-z]{26}\.v\d+\.\d{8}T\d{6}Z(\.r[0-9a-f]{16})?\z/
    CLAIM_TRIES = 4
    MAX_RETRY_AFTER = 86_400
    TIMEOUT = 15

    def initialize(api_url:, queue_url:, service: 'execute-api', lease_seconds: 60)
      # A request that hangs must not take the time of the next heartbeats.
      @api = Client.new(api_url, service, [TIMEOUT, lease_seconds / 2.0].min)
      @queue = Queue.new(queue_url)
      @lease_seconds = lease_seconds
      @worker = "#{Socket.gethostname}:#{Process.pid}"[0, 128]
      @handlers = {}
      @stopping = false
      @waiting = false
    end

    # Let the block do what the handler of this name is to do; it gets event and work.
    def handler(name, &block)
      @handlers[name] = block
    end

    # Work until SIGTERM or SIGINT, and then to the end of what runs.
    def run
      trap_signals
      failures = 0
      until @stopping
        begin
          work_on(waiting { @queue.receive })
          failures = 0
        rescue NoAnswer, Refused => e
          break if @stopping

          warn e.message
          failures += 1
          # Each receive of a message counts towards the queue's dead-letter queue:
          # while nothing can be claimed, few are made.
          waiting { sleep(1 + Hourbell.back_off(failures, cap: 60.0)) }
        end
      end
    end

    private

    def trap_signals
      loop_thread = Thread.current
      %w[TERM INT].each do |signal|
        trap(signal) do
          # A second one must not meet what the first one has begun to end.
          is_first = !@stopping
          @stopping = true
          loop_thread.raise(Stop) if is_first && @waiting
        end
      end
    end

    # Do what a stop ends: neither a long poll nor a pause must keep the process.
    def waiting
      @waiting = true
      yield unless @stopping
    rescue Stop
      nil
    ensure
      @waiting = false
    end

    def work_on(messages)
      works = read(messages || [])
      return if works.empty?

      tracked, running = works.partition(&:tracked)
      beats = Thread.new { beat_for_ever(running) }
      fault = fault_of { claim(tracked, running) unless tracked.empty? }
      # UNTRACKED work needs no claim.
      running.map { |work| Thread.new { perform(work) } }.each(&:join)
      raise fault if fault
    ensure
      beats&.kill
    end

    def fault_of
      yield
      nil
    rescue NoAnswer, Refused => e
      e
    end

    # Group the copies of a message; leave what is not understood, or not handled.
    def read(messages)
      works = {}
      messages.each do |message|
        event = parse(message['Body'])
        receipt = message['ReceiptHandle']
        if event['type'] == TEST
          @queue.delete([receipt])
        elsif !due?(event) || !@handlers.key?(event['data']['handler'])
          warn "left: #{message['Body'][0, 200]}"
        elsif works.key?(event['id'])
          works[event['id']].add(event, receipt)
        else
          works[event['id']] = Work.new(event: event, tracked: event['data']['tracking'] != 'UNTRACKED',
                                        token: SecureRandom.urlsafe_base64(24), receipts: [receipt])
        end
      end
      works.values
    end

    # One id that is none has a whole claim refused, and with it the others.
    def due?(event)
      event['type'] == DUE && ID.match?(event['id'].to_s) &&
        event['data'].is_a?(Hash) && event['data']['send'].is_a?(Integer)
    end

    def parse(body)
      event = JSON.parse(body)
      event.is_a?(Hash) ? event : {}
    rescue JSON::ParserError
      {}
    end

    # Claim in one call; add what is to be run to the others.
    def claim(works, running)
      since = Hourbell.now
      items = works.map { |work| work.item.merge(send: work.event['data']['send']) }
      results = claim_patiently({ worker: @worker, lease_seconds: @lease_seconds, items: items })
      done = []
      works.zip(results) do |work, result|
        case result['answer']
        when 'RUN'
          work.lease_ends = since + @lease_seconds
          work.attempt = result['attempt']
          # Another one than was drawn, if the attempt of an earlier try is over.
          work.token = result['lease_token'] || work.token
          running << work
        when 'SKIP', 'BUSY', 'WAIT'
          # Rows outlive messages: what has none is another tenant's.
          unknown = result['reason'] == 'EXPIRED' && result['state'].nil?
          unknown ? warn("#{work.event['id']}: unknown to this tenant") : done.concat(work.receipts)
        else warn "#{work.event['id']}: #{result['answer']} #{result['reason']}, left in the queue"
        end
      end
      @queue.delete(done)
    rescue Refused => e
      raise if e.status != 400 || works.one?

      claim_singly(works, running)
    end

    # One of them is no occurrence's, for which the others are not to blame.
    def claim_singly(works, running)
      works.each do |work|
        claim([work], running)
      rescue Refused => e
        warn e.message
      end
    rescue NoAnswer => e
      warn e.message
    end

    # With the same tokens a repeated claim is the same claim.
    def claim_patiently(document)
      failures = 0
      begin
        call('claim', document)
      rescue NoAnswer
        failures += 1
        raise if failures == CLAIM_TRIES

        waiting { sleep(Hourbell.back_off(failures)) }
        @stopping ? raise : retry
      end
    end

    def perform(work)
      failure = nil
      begin
        @handlers[work.event['data']['handler']].call(work.event, work)
      rescue SystemExit, SignalException, NoMemoryError
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException
        # NotImplementedError, a stack too deep: no StandardError, and no reason to end.
        failure = failure_of(e)
        warn "#{work.event['id']}: #{failure[:message]}"
      end
      work.over = true
      done = work.tracked ? tell(work, failure) : failure.nil?
      @queue.delete(work.receipts) if done
    end

    # Complete or fail until there is an answer, for as long as the lease lives.
    def tell(work, failure)
      return true if work.lease_lost

      route = failure ? 'fail' : 'complete'
      item = failure ? work.item.merge(error: failure) : work.item
      failures = 0
      while failures.zero? || Hourbell.now < work.lease_ends
        sleep(Hourbell.back_off(failures)) if failures.positive?
        begin
          # 404 and 409: another attempt has it, or it is over.
          return true if call(route, { items: [item] }).first['status'] < 500
        rescue NoAnswer => e
          warn e.message
        end
        failures += 1
      end
      false
    rescue Refused => e
      warn e.message
      false
    end

    def failure_of(error)
      failure = { class: 'RETRYABLE', type: error.class.to_s[0, 128], message: text_of(error)[0, 1024] }
      case error
      when Permanent then failure[:class] = 'PERMANENT'
      when Throttled
        failure[:class] = 'THROTTLED'
        seconds = seconds_of(error)
        failure[:retry_after_seconds] = seconds if seconds
      end
      failure
    end

    # How long the target asked to wait; nil where it said nothing sensible.
    def seconds_of(error)
      seconds = Float(error.retry_after)
      seconds.clamp(0, MAX_RETRY_AFTER).ceil unless seconds.nan?
    rescue StandardError
      nil
    end

    # JSON is UTF-8; the name of a file in a message need not be.
    def text_of(error)
      error.message.encode('UTF-8', invalid: :replace, undef: :replace).scrub
    rescue StandardError
      '(it has no text)'
    end

    # Extend the leases of what runs every third of them, and hide its messages for as
    # long.
    def beat_for_ever(running)
      loop do
        sleep(@lease_seconds / 3.0)
        works = running.reject { |work| work.over || work.lease_lost }
        tracked, untracked = works.partition(&:tracked)
        # First, since it must not wait for a heartbeat that hangs.
        hide(untracked.flat_map(&:receipts))
        extend_leases(tracked)
        hide(tracked.flat_map(&:receipts))
      end
    end

    def hide(receipts)
      @queue.hide(receipts, @lease_seconds)
    rescue NoAnswer, Refused => e
      warn "visibility: #{e.message}"
    end

    def extend_leases(works)
      return if works.empty?

      since = Hourbell.now
      results = call('heartbeat', { lease_seconds: @lease_seconds, items: works.map(&:item) })
      works.zip(results).each do |work, result|
        if result['status'] == 200
          work.lease_ends = since + @lease_seconds
          work.cancel_requested ||= result['cancel_requested']
        elsif result['status'] < 500 && !work.over
          work.lease_lost = true
        end
      end
    rescue NoAnswer, Refused => e
      warn "heartbeat: #{e.message}"
    end

    # Return the results, one for each item.
    def call(route, document)
      answer = @api.post("/v1/occurrences/#{route}", document, { 'Content-Type' => 'application/json' })
      results = answer['results'] if answer.is_a?(Hash)
      return results if results.is_a?(Array) && results.size == document[:items].size && results.all?(Hash)

      raise NoAnswer, "#{route}: no answer"
    end
  end
end
