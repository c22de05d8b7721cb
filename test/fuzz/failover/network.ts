// Network namespaces of the failover test: one for the clients, with a bridge, and one for each database member.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { addressOf, clientsAddress, clientsNamespace, memberNames, namespaceOf } from './bed.ts'

const ip = (...args: string[]): string => execFileSync('ip', args, { encoding: 'utf8' })
const ipInside = (...args: string[]): string => ip('netns', 'exec', clientsNamespace, 'ip', ...args)

/**
 * Creates the namespaces, and runs a command in the namespace of the clients. Then removes the namespaces. Returns the exit code.
 */
export async function runInNamespaces(command: readonly string[]): Promise<number> {
  const made: string[] = []
  const add = (name: string) => {
    ip('netns', 'add', name)
    made.push(name)
  }
  try {
    add(clientsNamespace)
    ipInside('link', 'set', 'lo', 'up')
    ipInside('link', 'add', 'br0', 'type', 'bridge')
    ipInside('addr', 'add', `${clientsAddress}/24`, 'dev', 'br0')
    ipInside('link', 'set', 'br0', 'up')
    for (const member of memberNames) {
      const name = namespaceOf(member)
      add(name)
      const port = `veth-${member}`
      ip('netns', 'exec', name, 'ip', 'link', 'set', 'lo', 'up')
      ipInside('link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
      ipInside('link', 'set', port, 'master', 'br0', 'up')
      ip('netns', 'exec', name, 'ip', 'addr', 'add', `${addressOf(member)}/24`, 'dev', 'eth0')
      ip('netns', 'exec', name, 'ip', 'link', 'set', 'eth0', 'up')
    }
    const child = spawn('ip', ['netns', 'exec', clientsNamespace, ...command], { stdio: 'inherit' })
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
    const [code] = (await once(child, 'exit')) as [number | null]
    return code ?? 1
  } finally {
    for (const name of made) {
      for (const pid of ip('netns', 'pids', name).split('\n').filter(Boolean)) process.kill(Number(pid), 'SIGKILL')
      ip('netns', 'del', name)
    }
  }
}
