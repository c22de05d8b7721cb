// Webhook receivers on this machine: one that answers correctly, and hostile ones that make the server wait.
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Worker } from 'node:worker_threads'

export async function startSinks() {
  /** Time of the first event for each subject. */
  const came = new Map<string, number>()
  const waiting = new Map<string, () => void>()
  const held = new Set<Socket>()
  const server = createServer((req, res) => {
    res.on('error', () => {})
    const [, how = ''] = req.url!.split('/')
    if (how === 'slow') {
      res.writeHead(200)
      const drip = setInterval(() => void res.write('x'), 500)
      res.once('close', () => clearInterval(drip))
    } else if (how === 'large') {
      res.writeHead(200)
      const more = () => {
        while (!res.destroyed && res.write(Buffer.alloc(65_536)));
      }
      res.on('drain', more)
      more()
    } else if (how === 'cut') req.socket.destroy()
    else if (how === 'moved') res.writeHead(307, { location: 'http://169.254.169.254/latest' }).end()
    else if (how === 'error') res.writeHead(500).end()
    // The other requests never get an answer.
  })
  server.on('connection', (socket: Socket) => {
    held.add(socket)
    socket.on('error', () => {}).once('close', () => held.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const thread = new Worker(new URL('./good-sink.ts', import.meta.url))
  const good = await new Promise<string>((resolve) => {
    thread.on('message', ({ url, subject }: { url?: string; subject?: string }) => {
      if (url !== undefined) resolve(url)
      if (subject === undefined) return
      if (!came.has(subject)) came.set(subject, performance.now())
      waiting.get(subject)?.()
      waiting.delete(subject)
    })
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    /** Receiver that answers correctly. */
    good,
    /** Resolves once this receiver has an event about the subject. Resolves to false if none arrives in time. */
    about: (subject: string, withinMs: number): Promise<boolean> =>
      new Promise((resolve) => {
        if (came.delete(subject)) return resolve(true)
        const give = setTimeout(() => {
          waiting.delete(subject)
          resolve(false)
        }, withinMs)
        waiting.set(subject, () => {
          clearTimeout(give)
          came.delete(subject)
          resolve(true)
        })
      }),
    async close() {
      await thread.terminate()
      for (const socket of held) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
