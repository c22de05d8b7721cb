// Ceilings of a run: a bare node:http server that sends given bytes, and a bare grpc-js server that sends a given message. It is
// a program of its own: `ceilings.ts PORT GRPC_PORT FOLDER`. The answer to `/name` is the file of that name in FOLDER.
import { readFileSync } from 'node:fs'
import http from 'node:http'
import { join } from 'node:path'
import grpc from '@grpc/grpc-js'

const [port, grpcPort, folder] = process.argv.slice(2)
const bodies = new Map<string, Buffer>()

http
  .createServer((req, res) => {
    const name = req.url!.slice(1)
    const body = bodies.get(name) ?? readFileSync(join(folder!, name))
    bodies.set(name, body)
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    res.end(body)
  })
  .listen(Number(port), '127.0.0.1')

const message = () => readFileSync(join(folder!, 'repo.binpb'))
let reply: Buffer | undefined
const echo = {
  requestStream: false,
  responseStream: false,
  requestSerialize: (b: Buffer) => b,
  requestDeserialize: (b: Buffer) => b,
}
const method = {
  ...echo,
  path: '/bench/Get',
  responseSerialize: (b: Buffer) => b,
  responseDeserialize: (b: Buffer) => b,
}
const server = new grpc.Server()
server.addService({ get: method }, {
  get: (_call: unknown, callback: (error: null, value: Buffer) => void) => {
    reply ??= message()
    callback(null, reply)
  },
} as never)
server.bindAsync(`127.0.0.1:${grpcPort}`, grpc.ServerCredentials.createInsecure(), () => console.log('ready'))
