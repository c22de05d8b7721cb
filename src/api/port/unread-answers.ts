// Memory limit for clients that do not read, over HTTP/1.1: one response on each connection, for a limited time. Node would
// create a response for every pipelined request.
import type { RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Most pipelined requests. No client sends more before it reads the first response. */
const mostAhead = 100

type Line = { last: ServerResponse; waiting: number }

/**
 * Passes on the requests of a connection one after the other. Closes the connection if a response waits to be read for `limitMs`.
 */
export function oneAfterTheOther(limitMs: number, listener: RequestListener): RequestListener {
  const lines = new WeakMap<Socket, Line>()
  const begin: RequestListener = (req, res) => {
    res.once('prefinish', () => {
      // Data that is sent at once needs no timer. While bytes are sent, Node restarts the timer, and afterwards sets another.
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
