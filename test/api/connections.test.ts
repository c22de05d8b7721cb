// Limits on the open connections of one client, at each of the addresses that the server listens on.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { networkInterfaces } from 'node:os'
import { test } from 'node:test'
import { startPinfold } from '../support/pinfold.ts'

/** Clients on loopback are exempt, so this test connects through another address of the machine. */
const own = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address

async function connected(host: string, port: number): Promise<net.Socket> {
  const socket = net.connect({ host, port }).on('error', () => {})
  await once(socket, 'connect')
  return socket
}
/** True if the server answers on the connection, false if it closes the connection. */
async function answers(socket: net.Socket): Promise<boolean> {
  const answered = new Promise<boolean>((resolve) => {
    socket.once('data', () => resolve(true))
    socket.once('close', () => resolve(false))
  })
  socket.write('GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n')
  return answered
}
const portOf = (url: string): number => Number(new URL(url).port)

test('limits the connections of a client as configured, for the main and the metrics address together', {
  skip: !own,
}, async () => {
  const anywhere = { host: '0.0.0.0', port: 0 }
  await using pinfold = await startPinfold({ listen: anywhere, metricsListen: anywhere, connectionsPerSource: 3 })
  const { port, metricsUrl } = pinfold
  const open: net.Socket[] = []
  for (const to of [port, portOf(metricsUrl!), port]) {
    const socket = await connected(own!, to)
    assert.ok(await answers(socket))
    open.push(socket)
  }
  for (const to of [port, portOf(metricsUrl!)]) assert.equal(await answers(await connected(own!, to)), false)
  // Other clients can connect, and so can this client after it has closed one.
  assert.ok(await answers(await connected('127.0.0.1', port)))
  open[1]!.destroy()
  for (;;) if (await answers(await connected(own!, port))) break
  for (const socket of open) socket.destroy()
})

test('the metrics address has its own connection limit, also for clients on this machine', async () => {
  await using pinfold = await startPinfold({ metricsListen: { host: '127.0.0.1', port: 0 } })
  const port = portOf(pinfold.metricsUrl!)
  const open: net.Socket[] = []
  for (let i = 0; i < 100; i++) open.push(await connected('127.0.0.1', port))
  assert.ok(await answers(open.at(-1)!))
  assert.equal(await answers(await connected('127.0.0.1', port)), false)
  assert.ok(await answers(await connected('127.0.0.1', pinfold.port)), 'the API has others')
  for (const socket of open) socket.destroy()
})
