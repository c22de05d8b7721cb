// Deliveries and the server process: after a kill, after a stop, and with another node.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientOf, onPostgres } from '../support/pinfold.ts'
import { createStorage, freeAddress, startProcess, tokenOf } from '../support/process.ts'
import { eventually, startReceiver } from '../support/receiver.ts'

const env = {
  PINFOLD_ALLOW_PRIVATE_ADDRESSES: 'on',
  PINFOLD_ALLOW_INSECURE_SINKS: 'on',
  PINFOLD_DELIVERY_RETRY_MIN_MS: '20',
  PINFOLD_DELIVERY_RETRY_MAX_MS: '200',
  PINFOLD_DELIVERY_TIMEOUT_MS: '1000',
  PINFOLD_DELIVERIES_IN_FLIGHT: '8',
}
const times = (count: number) => Array.from({ length: count }, (_, i) => i)

test('no event is lost or overtaken while the receiver was unavailable and the server was killed', async () => {
  await using storage = await createStorage()
  await using receiver = await startReceiver()
  const repos: string[] = []
  // A killed server counts as alive for a while, so the next server gets the same URL.
  const listen = await freeAddress()
  {
    await using server = await startProcess(storage, { env, listen })
    const client = clientOf(server.url, await tokenOf(storage))
    const org = (await client.post('/iam/v2/groups/', { name: 'acme' })).body.uid
    for (const i of times(5)) {
      repos.push((await client.post(`/registry/v2/repos/${org}`, { name: `repo${i}` })).body.uid)
    }
    const made = await client.post(`/events/v2/subscriptions/${org}`, { sink: receiver.url })
    assert.equal(made.status, 200, made.text)
    const describe = (round: number) =>
      Promise.all(
        repos.map(async (uid) => {
          for (const i of times(6)) await client.patch(`/registry/v2/repos/${uid}`, { description: `${round * 6 + i}` })
        }),
      )
    await describe(0)
    await receiver.until((got) => got.length >= 10)
    await receiver.shut()
    await describe(1)
    server.kill('SIGKILL')
    await server.exited
  }
  await storage.settled()
  await receiver.open()
  await using _again = await startProcess(storage, { env, listen })
  await receiver.until(() => receiver.accepted().length === 60)
  for (const uid of repos) {
    const order = receiver.accepted().filter(({ subject }) => subject === uid)
    assert.deepEqual(
      order.map(({ json }) => json.body.description),
      times(12).map(String),
    )
  }
  const repeated = receiver.got.filter(({ status }) => status === 200).length - 60
  assert.ok(repeated <= 16, `${repeated} were repeated, and no more than 8 were on their way each time`)
})

test('a stopping server finishes running deliveries, and repeats none afterwards', async () => {
  await using storage = await createStorage()
  await using receiver = await startReceiver()
  {
    await using server = await startProcess(storage, { env: { ...env, PINFOLD_DELIVERY_TIMEOUT_MS: '10000' } })
    const client = clientOf(server.url, await tokenOf(storage))
    const org = (await client.post('/iam/v2/groups/', { name: 'acme' })).body.uid
    await client.post(`/events/v2/subscriptions/${org}`, { sink: receiver.url })
    const held: (() => void)[] = []
    receiver.hold((release) => void held.push(release))
    for (const i of times(4)) await client.post(`/registry/v2/repos/${org}`, { name: `repo${i}` })
    await receiver.until((got) => got.length === 4)
    server.kill('SIGTERM')
    await eventually(
      () =>
        fetch(`${server.url}/readyz`).then(
          ({ status }) => status,
          () => 0,
        ),
      (status) => status !== 200,
    )
    for (const release of held) release()
    assert.equal((await server.exited).code, 0)
  }
  receiver.hold((release) => release())
  await using again = await startProcess(storage, { env })
  const client = clientOf(again.url, await tokenOf(storage))
  const [org] = (await client.get('/iam/v2/groups')).body.groups
  await client.post(`/registry/v2/repos/${org.uid}`, { name: 'last' })
  await receiver.until((got) => got.some(({ json }) => json.body.name === 'last'))
  assert.equal(receiver.got.length, 5)
})

test('after one of two nodes stops, the other takes over the deliveries', {
  skip: !onPostgres && 'one node only',
}, async () => {
  await using storage = await createStorage()
  await using receivers = await Promise.all(times(6).map(() => startReceiver())).then((list) => ({
    list,
    [Symbol.asyncDispose]: async () => {
      for (const one of list) await one[Symbol.asyncDispose]()
    },
  }))
  const url = { PINFOLD_URL: 'http://pinfold.example.com' }
  const [here, there] = [await freeAddress(), await freeAddress()]
  await using first = await startProcess(storage, { env: { ...env, ...url }, listen: here })
  await using _second = await startProcess(storage, { env: { ...env, ...url }, listen: there })
  const token = await tokenOf(storage)
  const [one, two] = [here, there].map((address) => clientOf(`http://${address}`, token))
  const org = (await one!.post('/iam/v2/groups/', { name: 'acme' })).body.uid
  const groups: string[] = []
  for (const [i, { url: sink }] of receivers.list.entries()) {
    groups.push((await one!.post(`/iam/v2/groups/${org}`, { name: `team${i}` })).body.uid)
    await one!.post(`/events/v2/subscriptions/${groups[i]}`, { sink })
  }
  const repos = await Promise.all(
    groups.map(async (group) => (await one!.post(`/registry/v2/repos/${group}`, { name: 'repo' })).body.uid as string),
  )
  const describe = async (client: typeof one, from: number, to: number) => {
    for (let i = from; i < to; i++) {
      await Promise.all(repos.map((uid) => client!.patch(`/registry/v2/repos/${uid}`, { description: `${i}` })))
    }
  }
  // The receivers do not respond while the first node is killed, so this node holds all running deliveries.
  for (const { hold } of receivers.list) hold(() => {})
  await describe(one, 0, 3)
  await Promise.all(receivers.list.map(({ until }) => until((got) => got.length >= 1)))
  first.kill('SIGKILL')
  for (const { hold } of receivers.list) hold((release) => release())
  await describe(two, 3, 6)
  for (const [i, receiver] of receivers.list.entries()) {
    const described = () => receiver.accepted().filter(({ subject }) => subject === repos[i])
    await receiver.until(() => described().length === 7)
    assert.deepEqual(
      described().map(({ json }) => json.body.description),
      ['', ...times(6).map(String)],
    )
  }
})
