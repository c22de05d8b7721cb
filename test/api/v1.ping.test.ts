import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { PingService } from '#gen/pinfold/ping/v1/ping_pb.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { startPinfold } from '../support/pinfold.ts'

const pinfold = await startPinfold()
const grpc = grpcClientOf(pinfold, PingService, undefined)
after(async () => {
  grpc[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
})

test('answers a ping with and without a token', async () => {
  assert.deepEqual((await pinfold.anonymous.get('/ping/v1/ping')).body, { response: 'pong' })
  assert.equal((await grpc.ping({})).response, 'pong')
})
