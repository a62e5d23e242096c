// Pays one withdrawal exactly once: node withdraw.js CONFIG BANK SERIAL CUST AMOUNT_MINOR.
//
// The bank is an address such as http://127.0.0.1:8099; the tables are those of the tutorial.
'use strict';
const http = require('node:http');
const https = require('node:https');
const tradelock = require('./tradelock.node');

// One request, on a connection of its own, so that nothing is repeated and no redirect followed.
// null: it was never connected, or no time is left, so no byte was sent.
function exchange(attempt, url, method, body) {
  const left = tradelock.left_ms(attempt); // asked for last
  if (left <= 0) return Promise.resolve(null);
  return new Promise((resolve, reject) => {
    let connected = false;
    const request = (url.protocol === 'https:' ? https : http).request(
      url, {method, agent: false, signal: AbortSignal.timeout(left)});
    request.on('socket', (socket) => socket.once('connect', () => { connected = true; }));
    request.on('error', (error) => (connected ? reject(error) : resolve(null)));
    request.on('response', (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => {
        try {
          resolve({code: response.statusCode, said: JSON.parse(Buffer.concat(parts).toString())});
        } catch (error) {
          reject(error);
        }
      });
    });
    request.end(body);
  });
}

// A payment is not lost for a reference that cannot be stored: that is left out.
function reference(said) {
  const given = said.channel_ref;
  return typeof given === 'string' && !/[\0\ufffd]/.test(given) ? given : '';
}

// The handlers, for a bank that keeps keys for ever and can be asked.  An exception is UNKNOWN.
const handlers = {
  // The one call that moves money.  Whatever is not a clear answer is UNKNOWN.
  async execute(bank, attempt) {
    // Made of the payload alone, so that each send of a key says the same.
    const {channel_key, serial_no, cust_no, op_code} = attempt;
    const order = JSON.stringify(
      {...JSON.parse(attempt.payload), channel_key, serial_no, cust_no, op_code});
    const answer = await exchange(attempt, new URL('/v1/pay', bank), 'POST', order);
    if (answer === null) return [tradelock.EXECUTE_NOT_SENT, ''];
    const means = {
      '200 succeeded': tradelock.EXECUTE_SUCCEEDED,
      '200 declined': tradelock.EXECUTE_DECLINED,
      '202 accepted': tradelock.EXECUTE_ACCEPTED,
      '429 rate_limited': tradelock.EXECUTE_RETRY_LATER,
    }[`${answer.code} ${answer.said.outcome}`];
    return [means ?? tradelock.EXECUTE_UNKNOWN, reference(answer.said)];
  },

  // What became of it, asked by the retry lane.
  async query(bank, attempt) {
    const url = new URL(`/v1/payments/${attempt.channel_key}`, bank);
    const answer = await exchange(attempt, url, 'GET');
    if (answer === null) return [tradelock.QUERY_UNREACHABLE, ''];
    const means = {
      '200 succeeded': tradelock.QUERY_SUCCEEDED,
      '200 failed': tradelock.QUERY_FAILED,
      '200 pending': tradelock.QUERY_PENDING,
      '404 not_found': tradelock.QUERY_NOT_FOUND,
    }[`${answer.code} ${answer.said.status}`];
    return [means ?? tradelock.QUERY_UNREACHABLE, reference(answer.said)];
  },
};

// Prints an answer, and returns its exit code: 0 paid, 1 not paid, 2 neither is known.
function tell(call, answer) {
  const word = answer.paid ? 'paid' : answer.not_paid ? 'not paid' : 'ask again';
  console.log(`${call}: ${answer.status}, ${word} ${answer.reference} ${answer.message}`);
  return answer.paid ? 0 : answer.not_paid ? 1 : 2;
}

async function pay(serial, cust, amount) {
  if (!Number.isSafeInteger(Number(amount))) throw new RangeError('JSON holds no such amount');
  const order = JSON.stringify({amount_minor: Number(amount), currency: 'EUR', payee: 'Anna'});
  const answer = await tradelock.run(serial, cust, order, amount);
  const code = tell('run', answer);
  // The retry lane finds out what is open; a mismatch is about the key's other payment.
  if (code === 2 && answer.status !== 'TL_MISMATCH') {
    return tell('await', await tradelock.await_(serial, cust, 60000n));
  }
  if (code === 0) tell('look', await tradelock.look(serial, cust));
  return code;
}

async function main(config, bank, serial, cust, amount) {
  const handle = (name, id, attempt) => handlers[name](bank, attempt).then(
    ([result, ref]) => tradelock.answer(id, result, ref), () => tradelock.answer(id, 0, ''));
  try {
    const opened = await tradelock.open(config, handle);
    if (opened.status !== 'TL_OK') throw new Error(opened.message);
    process.exitCode = await pay(serial, cust, BigInt(amount));
  } finally {
    await tradelock.close();
  }
}

if (process.argv.length !== 7) {
  console.error('usage: node withdraw.js CONFIG BANK SERIAL CUST AMOUNT_MINOR');
  process.exit(2);
}
main(...process.argv.slice(2)).catch((error) => {
  console.error(`withdraw.js: ${error.message}`);
  process.exitCode = 2;
});
