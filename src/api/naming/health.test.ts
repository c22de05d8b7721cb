import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { create, type DescMethod, fromBinary, type Message, toBinary } from '@bufbuild/protobuf'
import grpc from '@grpc/grpc-js'
import { Health, HealthCheckResponseSchema, HealthListResponseSchema } from '#gen/grpc/health/v1/health_pb.ts'
import { addHealth } from './health.ts'

const { check, list, watch } = Health.method
const pathOf = ({ name }: DescMethod) => `/grpc.health.v1.Health/${name}`
const written = (desc: DescMethod) => (message: Message) => Buffer.from(toBinary(desc.input, message))
const asked = (service: string) => create(check.input, { service })
const statusOf = (bytes: Buffer): number => fromBinary(HealthCheckResponseSchema, bytes).status
const [unknown, serving, notServing] = [3, 1, 2]

async function start() {
  const server = new grpc.Server()
  const health = addHealth(server)
  const bind = Promise.withResolvers<number>()
  server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) =>
    error ? bind.reject(error) : bind.resolve(port),
  )
  const client = new grpc.Client(`127.0.0.1:${await bind.promise}`, grpc.credentials.createInsecure())
  const send = (method: DescMethod, message: Message) =>
    new Promise<Buffer>((resolve, reject) => {
      const take = (error: grpc.ServiceError | null, bytes?: Buffer) => (error ? reject(error) : resolve(bytes!))
      client.makeUnaryRequest(pathOf(method), written(method), (bytes) => bytes, message, take)
    })
  const listen = (service: string) => {
    const stream = client.makeServerStreamRequest(pathOf(watch), written(watch), statusOf, asked(service))
    stream.on('error', () => {})
    return stream
  }
  const dispose = () => {
    client.close()
    server.forceShutdown()
  }
  return { health, send, listen, [Symbol.dispose]: dispose }
}

test('reports the health of the server, and NOT_FOUND for single services', async () => {
  using started = await start()
  const { health, send } = started
  assert.equal(statusOf(await send(check, asked(''))), serving)
  await assert.rejects(send(check, asked('x.Y')), { code: grpc.status.NOT_FOUND })
  const { statuses } = fromBinary(HealthListResponseSchema, await send(list, create(list.input)))
  assert.deepEqual([Object.keys(statuses), statuses['']!.status], [[''], serving])
  health.stop()
  assert.equal(statusOf(await send(check, asked(''))), notServing)
})

test('notifies watchers when the server is about to stop', async () => {
  using started = await start()
  const { health, listen } = started
  const [all, one] = [listen(''), listen('x.Y')]
  assert.deepEqual(await Promise.all([once(all, 'data'), once(one, 'data')]), [[serving], [unknown]])
  health.stop()
  assert.deepEqual(await once(all, 'data'), [notServing])
  all.cancel()
})
