import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import { startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { eventually, localSinks, startReceiver } from '../support/receiver.ts'

test('creates, tests, shows, replays and deletes a webhook from the command line', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using receiver = await startReceiver()
  const { seed, operator, app } = pinfold
  const org = await seed.group('', { name: 'acme' })
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: operator.token! }
  const command = (...args: string[]) => run(['webhooks', ...args], { env })
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await command(...args, '-o', 'json')
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout)
  }

  const made = await json('create', receiver.url, '--in', 'acme', '--type', '*.repo.*', '--type', '*.deleted.v1')
  assert.match(made.secret, /^whsec_/)
  assert.deepEqual(made.types, ['*.repo.*', '*.deleted.v1'])
  const { uid } = made
  const listed = await command('list')
  assert.match(listed.stdout, new RegExp(`${uid} +${receiver.url} +0 +0 +ok`))
  assert.ok(!listed.stdout.includes('whsec_'))
  assert.deepEqual((await json('list', '--in', org.uid)).items[0].types, made.types)

  assert.equal(JSON.parse((await command('deliveries', receiver.url, '-o', 'json')).stdout).items.length, 0)
  await seed.group('', { name: 'other' })
  const second = await json('create', receiver.url, '--in', 'other', '--type', '*.none')
  const unclear = await command('test', receiver.url)
  assert.deepEqual([unclear.code, unclear.stdout], [1, ''])
  assert.match(unclear.stderr, new RegExp(`several webhooks have this URL; .*\n(?:.*\n)*pinfold: ${second.uid}\n`))
  assert.equal((await command('delete', second.uid)).code, 0)
  const none = await command('delete', 'https://nobody.example/')
  assert.equal(none.code, 1)
  assert.match(none.stderr, /no webhook https:\/\/nobody.example\/ was found: .*\n.*pinfold webhooks list/)

  const tested = await command('test', uid)
  assert.deepEqual([tested.code, tested.stderr], [0, ''])
  assert.match(tested.stdout, /^delivered \(200\) in \d+ ms\n$/)
  receiver.answer(() => ({ status: 500 }))
  assert.equal((await command('test', uid)).code, 1)
  receiver.answer(() => undefined)

  const repo = await seed.repo(org.uid)
  await receiver.until((got) => got.length === 3)
  // The result is stored after the receiver has responded.
  await eventually(
    () => command('deliveries', uid, '--state', 'delivered'),
    ({ stdout }) => /repo\.created\.v1 +DELIVERED +delivered \(200\)/.test(stdout),
  )
  assert.equal((await json('deliveries', uid, '--limit', '1')).items.length, 1)

  const replayed = await command('replay', uid, '--since', repo.createTime)
  assert.equal(replayed.stdout, '1 events will be sent again\n')
  await receiver.until((got) => got.length === 4)
  assert.equal(receiver.got[3]!.id, receiver.got[2]!.id)

  await operator.post(`/events/v2/subscriptions/${uid}:pause`)
  await seed.repo(org.uid)
  await eventually(
    () => operator.get(`/events/v2/subscriptions/${uid}/settings`),
    ({ body }) => body.waiting === '1',
  )
  await app.db.tx((tx) =>
    tx.run(sql`
      INSERT INTO deliveries (id, subscription_id, event_id, subject, create_time)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
      SELECT -n.i, s.id, 0, 'x', s.create_time FROM n, subscriptions s WHERE s.uid = ${uid}`),
  )
  const since = ['replay', uid, '--since', repo.createTime]
  const cut = await command(...since)
  const [, token] =
    /^1 events will be sent again\nthe queue of the webhook is full; .* --page-token (\S+)\n$/.exec(cut.stdout) ?? []
  assert.ok(token, cut.stdout + cut.stderr)
  assert.match(
    (await command(...since, '--page-token', token)).stderr,
    /the subscription would have more than 10000 pending deliveries/,
  )
  await app.db.tx((tx) => tx.run(sql`DELETE FROM deliveries WHERE id < 0`))
  const named = ['replay', receiver.url, '--since', repo.createTime, '--page-token', token]
  assert.equal((await command(...named)).stdout, '1 events will be sent again\n')

  assert.equal((await command('delete', receiver.url)).code, 0)
  assert.equal((await command('delete', uid)).code, 1)
  const wrong = [
    ['create', 'http://user:secret@127.0.0.1/', '--in', 'acme'],
    ['delete', 'not-a-uid'],
    ['deliveries', uid, '--limit', '0'],
    ['replay', uid],
  ]
  for (const args of wrong) {
    const { code, stderr } = await command(...args)
    assert.ok(code !== 0 && stderr !== '' && !stderr.includes('secret@'), `${args}: ${code} ${stderr}`)
  }
})

test('an interrupted replay prints where to continue', async () => {
  const answers = [
    [200, { eventCount: '3', nextPageToken: 'here' }],
    [403, { code: 7, message: 'not any more', details: [] }],
  ] as const
  let asked = 0
  const server = createServer((req, res) => {
    req.resume()
    const [status, body] = answers[asked++]!
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const env = { PINFOLD_API: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, PINFOLD_TOKEN: 'x.y.z' }
  const uid = `${'a'.repeat(40)}/${'b'.repeat(16)}`
  const args = ['webhooks', 'replay', uid, '--since', '2026-11-20T09:00:00Z']
  const { code, stdout } = await run(args, { env })
  server.close()
  assert.deepEqual(
    [code, stdout.split('\n')],
    [1, ['3 events will be sent again', 'not any more; to continue later: --page-token here', '']],
  )
})
