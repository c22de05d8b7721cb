// Records the addresses that this process connects to, whatever code does so. Limits the host names that it can resolve.
import dns, { type LookupAddress } from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import { isIP, Socket } from 'node:net'

/** Records each address of a connection attempt from now on, including failed attempts. */
export function recordConnections() {
  const attempts = new Map<string, number>()
  const { connect } = Socket.prototype
  const recorded = function (this: Socket, ...given: unknown[]): Socket {
    this.on('connectionAttempt', (address: string) => attempts.set(address, (attempts.get(address) ?? 0) + 1))
    return Reflect.apply(connect, this, given)
  }
  Socket.prototype.connect = recorded as typeof connect
  return {
    attempts,
    /** Recorded addresses, without the address that all servers share. */
    elsewhere: () => [...attempts.keys()].filter((address) => address !== '127.0.0.1'),
    [Symbol.dispose]() {
      Socket.prototype.connect = connect
    },
  }
}

/** Resolves names to these addresses only, without DNS requests. `asked` lists the names that were looked up. */
export function resolveOnly(names: ReadonlyMap<string, readonly string[]>) {
  const asked = new Set<string>()
  const { lookup } = dns
  const known = (host: string, ...rest: unknown[]): void => {
    const answer = rest.at(-1) as (error: Error | null, addresses: LookupAddress[] | string, family?: number) => void
    const all = (rest[0] as { all?: boolean }).all === true
    const found = isIP(host) ? [host] : host === 'localhost' ? ['127.0.0.1'] : names.get(host)
    asked.add(host)
    const addresses = (found ?? []).map((address) => ({ address, family: isIP(address) }))
    const error = found ? null : Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
    if (all) process.nextTick(answer, error, addresses)
    else process.nextTick(answer, error, addresses[0]?.address, addresses[0]?.family)
  }
  dns.lookup = known as unknown as typeof lookup
  syncBuiltinESMExports()
  return {
    asked,
    [Symbol.dispose]() {
      dns.lookup = lookup
      syncBuiltinESMExports()
    },
  }
}
