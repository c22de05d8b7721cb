// Allowed private addresses for outgoing requests: the operator lists them by purpose.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '#config.ts'
import { startExchange } from '../support/exchange.ts'

test('an address allowed for issuers is not allowed for sinks, nor the reverse', async () => {
  const only = { allowPrivateAddresses: false, allowInsecureSinks: true }
  for (const [settings, exchanged, subscribed] of [
    [{ issuersPrivate: ['127.0.0.0/8'] }, 200, 400],
    [{ sinksPrivate: ['127.0.0.1'] }, 401, 200],
    [{ issuersPrivate: ['localhost', '10.0.0.0/8'] }, 401, 400],
    [{ allowPrivateAddresses: true }, 200, 200],
  ] as const) {
    await using scene = await startExchange({ ...only, ...settings })
    const { uid: identity } = await scene.identity()
    const answer = await scene.exchange(await scene.token(), { identity })
    const made = await scene.pinfold.operator.post(`/events/v2/subscriptions/${scene.org.uid}`, {
      sink: 'http://127.0.0.1:9/hook',
    })
    assert.deepEqual([answer.status, made.status], [exchanged, subscribed], JSON.stringify(settings))
    assert.equal(scene.issuer.requests.length > 0, exchanged === 200)
  }
})

test('the lists of allowed addresses accept names, addresses and ranges', () => {
  const read = (PINFOLD_ISSUERS_PRIVATE: string) => readConfig({ PINFOLD_ISSUERS_PRIVATE }).issuersPrivate
  assert.deepEqual(read(' idp.corp.internal, 10.2.0.0/16,fd00::/8 ,localhost'), [
    'idp.corp.internal',
    '10.2.0.0/16',
    'fd00::/8',
    'localhost',
  ])
  for (const wrong of ['https://idp.corp', 'idp:443', '10.2.0.0/33', '10.2', '*.corp', 'a b', '1', '.corp']) {
    assert.throws(() => read(wrong), /PINFOLD_ISSUERS_PRIVATE must be host names, addresses or CIDR ranges/, wrong)
  }
})
