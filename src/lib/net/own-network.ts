import { readFileSync, readlinkSync } from 'node:fs'

/**
 * Identifies the network namespace of this process, since 127.0.0.1 is a different machine in each container. Empty if the system
 * does not expose it.
 */
export function ownNetwork(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot} ${readlinkSync('/proc/self/ns/net')}`
  } catch {
    return ''
  }
}
