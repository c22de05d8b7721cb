// DNS lookups of records other than addresses.
import { Resolver } from 'node:dns/promises'

export type Dns = {
  /** TXT records of a name. Each record is a list of parts. Throws an error with a code such as ENOTFOUND or ETIMEOUT. */
  resolveTxt(name: string): Promise<string[][]>
}

/** Lookups with the name servers of the system. A lookup takes at most a few seconds. */
export function createDns(): Dns {
  const resolver = new Resolver({ timeout: 2000, tries: 2 })
  return { resolveTxt: (name) => resolver.resolveTxt(name) }
}
