// Objects of requests that survive in V8's heap (docs/decisions/0140-v8-heap-of-requests.md).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { atOnce } from '../support/at-once.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { clientOf } from '../support/pinfold.ts'
import { createStorage, startProcess, tokenOf } from '../support/process.ts'
import { serverOptions } from '../support/server-options.ts'

const lanes = 16
/**
 * Limit in bytes per request. A request may leave some data for the next request, but its own objects have at least 3,000 bytes.
 */
const mostPromoted = 1000
const skip = process.env.PINFOLD_TEST_DATABASE ? 'the queries of its driver live as long as they wait' : false

test('objects of a request do not reach the old generation of the heap', { skip }, async () => {
  await using storage = await createStorage()
  // The start is the same as in bin/pinfold, but V8 prints each collection.
  const script = `shift; exec bin/pinfold-node --trace-gc-nvp ${serverOptions().join(' ')} src/main.ts "$@"`
  await using server = await startProcess(storage, { lead: ['sh', '-c', script, 'sh'] })
  const { url, output } = server
  const token = await tokenOf(storage)
  const client = clientOf(url, token)
  const { body: org } = await client.post('/iam/v2/groups/', { name: 'acme' })
  const { body: repo } = await client.post(`/registry/v2/repos/${org.uid}`, { name: 'app' })
  for (let i = 0; i < 100; i++) await client.patch(`/registry/v2/repos/${repo.uid}`, { description: `of turn ${i}` })

  /** Bytes for each request that V8 has promoted after two small collections. */
  async function promotedBy(send: () => Promise<unknown>): Promise<number> {
    const count = 4000
    const from = output.stdout.length
    await atOnce(lanes, count, send)
    const collections = [...output.stdout.slice(from).matchAll(/ gc=s .* promoted=(\d+) /g)]
    assert.ok(collections.length > 4, `${collections.length} collections`)
    return collections.reduce((sum, [, bytes]) => sum + Number(bytes), 0) / count
  }
  /** Startup objects live until the first large collection, so the first results are ignored. */
  async function inTheEnd(send: () => Promise<unknown>): Promise<number> {
    let promoted = await promotedBy(send)
    for (let turn = 0; turn < 3 && (turn === 0 || promoted >= mostPromoted); turn++) promoted = await promotedBy(send)
    return promoted
  }

  const rest = await inTheEnd(async () => {
    const { status } = await client.get(`/registry/v2/repos/${repo.uid}`)
    assert.equal(status, 200)
  })
  assert.ok(rest < mostPromoted, `${rest} bytes of a request over REST`)

  using repos = grpcClientOf({ port: Number(new URL(url).port) }, ReposService, token)
  const grpc = await inTheEnd(() => repos.getRepo({ uid: String(repo.uid) }))
  assert.ok(grpc < mostPromoted, `${grpc} bytes of a call over gRPC`)
})
