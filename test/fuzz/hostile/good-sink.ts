// Thread with a webhook receiver that answers correctly, however busy the attacks are. It reports the subjects of received
// events.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parentPort } from 'node:worker_threads'

const server = createServer((req, res) => {
  res.on('error', () => {})
  req.resume().once('end', () => {
    parentPort!.postMessage({ subject: String(req.headers['ce-subject']) })
    res.writeHead(200).end()
  })
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  parentPort!.postMessage({ url: `http://127.0.0.1:${port}/good` })
})
