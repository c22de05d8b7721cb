import { readFileSync, readlinkSync } from 'node:fs'

/**
 * Which network of which machine this process is in, since 127.0.0.1 is another place in every container. Empty where the
 * system does not say.
 */
export function ownNetwork(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot} ${readlinkSync('/proc/self/ns/net')}`
  } catch {
    return ''
  }
}
