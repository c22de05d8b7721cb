// TCP connection on which a test writes HTTP/1.1 byte by byte.
import { once } from 'node:events'
import net from 'node:net'

export type RawConnection = {
  write(text: string | Buffer): void
  /** All text received so far, as latin1. */
  received(): string
  /**
   * Waits until the received text matches, and removes the text up to the end of the match. Fails if the connection is closed
   * before.
   */
  take(pattern: RegExp): Promise<RegExpMatchArray>
  /** Resolves when the server has closed the connection. */
  closed: Promise<void>
  end(): void
  /** Stops reading until `resume` is called. */
  pause(): void
  resume(): void
  [Symbol.dispose](): void
}

export async function connectRaw(port: number): Promise<RawConnection> {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
  let text = ''
  let over = false
  const wakers = new Set<() => void>()
  const wake = () => {
    for (const waker of wakers) waker()
  }
  const closed = new Promise<void>((resolve) => {
    const finish = () => {
      over = true
      socket.destroy()
      wake()
      resolve()
    }
    socket.once('end', finish)
    socket.once('close', finish)
  })
  socket.on('error', () => {}) // The server may also close the connection with a reset.
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
    wake()
  })
  await once(socket, 'connect')

  return {
    write: (bytes) => void socket.write(bytes),
    received: () => text,
    take: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const match = pattern.exec(text)
          if (match) text = text.slice(match.index + match[0].length)
          else if (!over) return
          wakers.delete(look)
          if (match) resolve(match)
          else reject(new Error(`closed before ${pattern}, after ${JSON.stringify(text)}`))
        }
        wakers.add(look)
        look()
      }),
    closed,
    end: () => socket.end(),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    [Symbol.dispose]: () => socket.destroy(),
  }
}

/** Reads one whole response with a content-length. Returns its status and its body. */
export async function takeResponse(connection: RawConnection): Promise<{ status: number; head: string; body: string }> {
  const [head, status] = await connection.take(/^HTTP\/1\.1 (\d{3}) [\s\S]*?\r\n\r\n/)
  const length = Number(/content-length: (\d+)/i.exec(head!)?.[1] ?? 0)
  const [body] = await connection.take(new RegExp(`^[\\s\\S]{${length}}`))
  return { status: Number(status), head: head!, body: body! }
}
