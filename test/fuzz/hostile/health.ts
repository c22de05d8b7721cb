// Thread that requests /healthz every 50 ms during the attacks, and reports the time of each answer.
import { Agent, request } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

const { port } = workerData as { port: number }
const agent = new Agent({ keepAlive: true, maxSockets: 8 })

let due = performance.now()

/** `late` is the delay of this thread itself, for which the server is not responsible. */
function ask(): void {
  const began = performance.now()
  const late = Math.max(0, began - due)
  due = began + 50
  const tell = (status: number | string) => parentPort!.postMessage({ ms: performance.now() - began, late, status })
  const req = request({ agent, host: '127.0.0.1', port, path: '/healthz', timeout: 30_000 }, (res) => {
    res.resume().once('end', () => tell(res.statusCode!))
  })
  req.once('timeout', () => req.destroy())
  req.once('error', (error: NodeJS.ErrnoException) => tell(error.code ?? error.message)).end()
}

setInterval(ask, 50)
