// Thread of `registry.ts`: a proxy that ends TLS and sets forwarding headers, like a proxy in front of a real server.
import { request } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'

const { target, cert, key } = workerData as { target: string; cert: string; key: string }
const { hostname, port } = new URL(target)

const server = createServer({ cert, key }, (req, res) => {
  const headers = {
    ...req.headers,
    host: `${hostname}:${port}`,
    'x-forwarded-host': req.headers.host ?? '',
    'x-forwarded-proto': 'https',
    'x-forwarded-for': req.socket.remoteAddress ?? '',
  }
  const passed = request({ hostname, port, path: req.url, method: req.method, headers }, (answer) => {
    res.writeHead(answer.statusCode!, answer.headers)
    answer.pipe(res)
  })
  passed.on('error', () => res.destroy())
  req.pipe(passed)
})
server.listen(0, '127.0.0.1', () => parentPort!.postMessage((server.address() as AddressInfo).port))
