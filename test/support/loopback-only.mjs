// Loaded before a program with --import: it can reach nothing but this machine, and says what it would have reached.
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'

const isHere = (host) => /^(?:localhost|127\.|::1$)/.test(host)

function refuse(host) {
  process.stderr.write(`EGRESS ${host}\n`)
  return Object.assign(new Error(`${host} is not on this machine`), { code: 'ENOTFOUND' })
}

const { connect } = net.Socket.prototype
net.Socket.prototype.connect = function (...args) {
  const [given] = Array.isArray(args[0]) ? args[0] : args
  const named = typeof given === 'object' ? given.host : typeof args[1] === 'string' ? args[1] : undefined
  const isPath = typeof given === 'string' || typeof given?.path === 'string'
  if (isPath || named === undefined || isHere(named)) return connect.apply(this, args)
  throw refuse(named)
}

const { lookup } = dns
dns.lookup = (host, ...rest) => {
  if (isHere(host) || net.isIP(host)) return lookup(host, ...rest)
  rest.at(-1)(refuse(host))
}
const lookupLater = dns.promises.lookup
dns.promises.lookup = (host, ...rest) =>
  isHere(host) || net.isIP(host) ? lookupLater(host, ...rest) : Promise.reject(refuse(host))
syncBuiltinESMExports()
