// Preloaded into a program with --import. It limits connections to this machine, and prints the addresses of refused ones.
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
  // Emits an `error` event in a later tick, as a network failure does. Node looks up only names, so a name replaces the address.
  const options = typeof given === 'object' ? given : { port: given }
  return connect.call(this, { ...options, host: 'elsewhere.invalid', lookup: failLater(refuse(named)) })
}

function failLater(error) {
  return (...args) => process.nextTick(args.at(-1), error)
}

const { lookup } = dns
dns.lookup = (host, ...rest) => {
  if (isHere(host) || net.isIP(host)) return lookup(host, ...rest)
  failLater(refuse(host))(...rest)
}
const lookupLater = dns.promises.lookup
dns.promises.lookup = (host, ...rest) =>
  isHere(host) || net.isIP(host) ? lookupLater(host, ...rest) : Promise.reject(refuse(host))
syncBuiltinESMExports()
