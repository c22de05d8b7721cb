// What a client that does not read may have in memory over HTTP/1.1: one answer on each connection, and not for long.
// Node would have as many made as the client has asked for ahead.
import type { RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** More than any client asks for before it reads the first answer. */
const mostAhead = 100

type Line = { last: ServerResponse; waiting: number }

/** Hands over the requests of a connection one after the other, and closes it when an answer waits to be read for `limitMs`. */
export function oneAfterTheOther(limitMs: number, listener: RequestListener): RequestListener {
  const lines = new WeakMap<Socket, Line>()
  const begin: RequestListener = (req, res) => {
    res.once('prefinish', () => {
      // What is sent at once needs no timer. As long as bytes leave, Node begins the time anew, and afterwards sets another.
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
