// What requests leave behind in V8's heap (docs/decisions/0140-what-outlives-a-request.md).
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import { test } from 'node:test'
import { create, toBinary } from '@bufbuild/protobuf'
import { GetRepoRequestSchema } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { atOnce } from '../support/at-once.ts'
import { clientOf } from '../support/pinfold.ts'
import { makePlace, startProcess, tokenOf } from '../support/process.ts'

const lanes = 16
/** Some of what a request needs may be kept for the next; what is made for one alone has 3,000 bytes and more. */
const mostPromoted = 1000
const skip = process.env.PINFOLD_TEST_DATABASE ? 'the queries of its driver live as long as they wait' : false

test('what a request is made of does not become old', { skip }, async () => {
  await using place = await makePlace()
  // As bin/pinfold begins, but V8 tells of each collection.
  const script = 'shift; exec bin/pinfold-node --trace-gc-nvp --expose-gc --max-semi-space-size=8 src/main.ts "$@"'
  await using server = await startProcess(place, { lead: ['sh', '-c', script, 'sh'] })
  const { url, output } = server
  const token = await tokenOf(place)
  const client = clientOf(url, token)
  const { body: org } = await client.post('/iam/v2/groups/', { name: 'acme' })
  const { body: repo } = await client.post(`/registry/v2/repos/${org.uid}`, { name: 'app' })
  for (let i = 0; i < 100; i++) await client.patch(`/registry/v2/repos/${repo.uid}`, { description: `of turn ${i}` })

  /** How many bytes of a request V8 has found to have lived through two small collections. */
  async function promotedBy(send: () => Promise<unknown>): Promise<number> {
    const count = 4000
    const from = output.stdout.length
    await atOnce(lanes, count, send)
    const collections = [...output.stdout.slice(from).matchAll(/ gc=s .* promoted=(\d+) /g)]
    assert.ok(collections.length > 4, `${collections.length} collections`)
    return collections.reduce((sum, [, bytes]) => sum + Number(bytes), 0) / count
  }
  /** What starting has left lasts until the first large collection, so not the first of them count. */
  async function inTheEnd(send: () => Promise<unknown>): Promise<number> {
    let promoted = await promotedBy(send)
    for (let turn = 0; turn < 3 && (turn === 0 || promoted >= mostPromoted); turn++) promoted = await promotedBy(send)
    return promoted
  }

  const agent = new http.Agent({ keepAlive: true, maxSockets: lanes })
  const authorization = `Bearer ${token}`
  const rest = await inTheEnd(async () => {
    const request = http.get(`${url}/registry/v2/repos/${repo.uid}`, { agent, headers: { authorization } })
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    assert.equal(response.statusCode, 200)
    await once(response.resume(), 'end')
  })
  agent.destroy()
  assert.ok(rest < mostPromoted, `${rest} bytes of a request over REST`)

  const message = toBinary(GetRepoRequestSchema, create(GetRepoRequestSchema, { uid: String(repo.uid) }))
  const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message])
  const session = http2.connect(url)
  const headers = {
    ':method': 'POST',
    ':path': '/pinfold.platform.registry.v2.ReposService/GetRepo',
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization,
  }
  const grpc = await inTheEnd(async () => {
    const stream = session.request(headers)
    stream.resume().end(frame)
    const [trailers] = await once(stream, 'trailers')
    assert.equal(trailers['grpc-status'], '0')
    await once(stream, 'close')
  })
  session.close()
  assert.ok(grpc < mostPromoted, `${grpc} bytes of a call over gRPC`)
})
