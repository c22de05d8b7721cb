// Limit on the memory for HTTP/1.1 clients that do not read: each connection has one response at a time, for a limited time. Node
// itself would create the responses to all pipelined requests at once.
import type { RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Maximum number of pipelined requests. A well-behaved client sends fewer before it reads the first response. */
const mostAhead = 100

type Line = { last: ServerResponse; waiting: number }

/**
 * Serves the requests of a connection one after the other. Closes the connection if the client does not read a response for
 * `limitMs`.
 */
export function oneAfterTheOther(limitMs: number, listener: RequestListener): RequestListener {
  const lines = new WeakMap<Socket, Line>()
  const begin: RequestListener = (req, res) => {
    res.once('prefinish', () => {
      // Sets the timer only if data is still waiting. Node restarts the timer while bytes are sent, and sets another one for idle
      // connections.
      if (req.socket.writableLength > 0) req.socket.setTimeout(limitMs)
    })
    listener(req, res)
  }
  return (req, res) => {
    const { socket } = req
    const line = lines.get(socket)
    if (!line) {
      lines.set(socket, { last: res, waiting: 0 })
      begin(req, res)
      return
    }
    const { last } = line
    line.last = res
    if (last.writableFinished) {
      begin(req, res)
      return
    }
    if (++line.waiting > mostAhead) {
      socket.destroy()
      return
    }
    last.once('close', () => {
      line.waiting--
      if (socket.destroyed) return
      socket.setTimeout(0)
      begin(req, res)
    })
  }
}
