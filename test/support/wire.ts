// TCP proxy in front of a database or a bucket, which simulates network failures.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * `held`: no bytes pass. `cut`: connections are closed and refused. `moved`: old connections stay silent forever, and new ones
 * work. `mute`: requests pass, and answers do not.
 */
export type WireState = 'open' | 'held' | 'cut' | 'moved' | 'mute'

/** Forwards connections until its state is changed. */
export async function startWire(to: { host: string; port: number }) {
  const pairs = new Set<[Socket, Socket]>()
  /** Connections that stay silent forever. */
  const silent = new Set<[Socket, Socket]>()
  let state: WireState = 'open'
  let accepted = 0
  const server = createServer((socket) => {
    if (state === 'cut') return void socket.destroy()
    accepted++
    const on = connect(to.port, to.host)
    const pair: [Socket, Socket] = [socket, on]
    pairs.add(pair)
    for (const one of pair) {
      one
        .on('error', () => {})
        .once('close', () => {
          pairs.delete(pair)
          silent.delete(pair)
          socket.destroy()
          on.destroy()
        })
      if (state === 'held') one.pause()
    }
    socket.on('data', (chunk) => void (silent.has(pair) || on.write(chunk)))
    on.on('data', (chunk) => void (silent.has(pair) || state === 'mute' || socket.write(chunk)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    /** Number of connections that were forwarded so far. */
    accepted: () => accepted,
    set(next: WireState): void {
      state = next
      for (const pair of pairs) {
        if (next === 'moved') silent.add(pair)
        for (const one of pair) {
          if (next === 'cut') one.destroy()
          else if (next === 'held') one.pause()
          else one.resume()
        }
      }
    },
    close() {
      for (const pair of pairs) for (const one of pair) one.destroy()
      server.close()
    },
  }
}
