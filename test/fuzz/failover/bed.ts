// A highly available PostgreSQL on one machine: three members with Patroni, each in a network namespace of its own, etcd and
// HAProxy. `network.ts` makes the namespaces, and this runs inside the one of the clients.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

export const clientsNamespace = 'pinfold-fo'
export const clientsAddress = '10.83.0.1'
export const memberNames = ['m1', 'm2', 'm3'] as const
export type MemberName = (typeof memberNames)[number]

export const namespaceOf = (member: MemberName): string => `${clientsNamespace}-${member}`
export const addressOf = (member: MemberName): string => `10.83.0.1${member.slice(1)}`

/** Ports of HAProxy. One closes all sessions of a member that fails its check, the other keeps them open. */
export const proxyPorts = { closes: 5000, keeps: 5001 } as const

/**
 * Minimum times that Patroni accepts; usual values are 30, 10 and 10. The allowed lag lets a standby take over although it misses
 * some pushes.
 */
const dcs = { ttl: 20, loop_wait: 2, retry_timeout: 3, maximum_lag_on_failover: 104_857_600 }

const asPostgres = ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups']
const inNamespace = (member: MemberName): string[] => ['ip', 'netns', 'exec', namespaceOf(member)]

const text = (command: string, ...args: string[]): string => execFileSync(command, args, { encoding: 'utf8' })

function postgresPrograms(): string {
  const root = '/usr/lib/postgresql'
  const [newest] = readdirSync(root).sort((a, b) => Number(b) - Number(a))
  return join(root, newest!, 'bin')
}

function patroniConfig(member: MemberName, folder: string): object {
  const address = addressOf(member)
  const hba = ['local all all trust', 'host all all 10.83.0.0/24 trust', 'host replication all 10.83.0.0/24 trust']
  return {
    scope: 'pinfold',
    name: member,
    restapi: { listen: `${address}:8008`, connect_address: `${address}:8008` },
    etcd3: { host: `${clientsAddress}:2379` },
    bootstrap: {
      dcs: { ...dcs, postgresql: { use_pg_rewind: true, use_slots: true, parameters: { wal_log_hints: 'on' } } },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums'],
    },
    postgresql: {
      listen: `${address}:5432`,
      connect_address: `${address}:5432`,
      data_dir: join(folder, member),
      bin_dir: postgresPrograms(),
      pgpass: join(folder, `${member}.pgpass`),
      pg_hba: hba,
      authentication: { superuser: { username: 'postgres' }, replication: { username: 'replicator' } },
      parameters: { unix_socket_directories: '', max_connections: 200 },
    },
  }
}

function proxyConfig(): string {
  const members = memberNames.map((name) => `  server ${name} ${addressOf(name)}:5432 check port 8008`).join('\n')
  const listen = (name: string, port: number, more: string) => `listen ${name}
  bind ${clientsAddress}:${port}
  mode tcp
  timeout connect 2s
  timeout client 30m
  timeout server 30m
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fall 3 rise 2${more}
${members}
`
  return `${listen('closes', proxyPorts.closes, ' on-marked-down shutdown-sessions')}${listen('keeps', proxyPorts.keeps, '')}`
}

type ClusterMember = { name: MemberName; role: string; state: string; lag?: number | string }

async function ask(member: MemberName, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`http://${addressOf(member)}:8008${path}`, {
    ...init,
    signal: AbortSignal.timeout(init.method ? 40_000 : 800),
  })
}

/** Member that currently answers as the primary. */
export async function findPrimary(): Promise<MemberName | undefined> {
  const asked = memberNames.map(async (name) =>
    (await ask(name, '/primary').catch(() => undefined))?.ok ? name : undefined,
  )
  return (await Promise.all(asked)).find((name) => name !== undefined)
}

export class Bed {
  readonly folder: string
  readonly #patroni: string
  readonly #children: ChildProcess[] = []

  private constructor(folder: string, patroni: string) {
    this.folder = folder
    this.#patroni = patroni
  }

  /** Starts etcd, the members one after the other, and HAProxy. Resolves once all of them are ready. */
  static async start(patroni: string): Promise<Bed> {
    const folder = mkdtempSync(join(tmpdir(), 'pinfold-failover-'))
    chmodSync(folder, 0o777)
    await using opening = new AsyncDisposableStack()
    const bed = opening.use(new Bed(folder, patroni))
    const client = `http://${clientsAddress}:2379`
    bed.#run('etcd', [
      'etcd',
      ...['--data-dir', join(folder, 'etcd'), '--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--listen-peer-urls', 'http://127.0.0.1:2380', '--enable-v2=false'],
    ])
    for (const name of memberNames) {
      bed.startMember(name)
      if (name === memberNames[0]) await bed.primary(60)
    }
    writeFileSync(join(folder, 'haproxy.cfg'), proxyConfig())
    bed.#run('haproxy', ['haproxy', '-db', '-f', join(folder, 'haproxy.cfg')])
    await bed.healthy('async')
    // HAProxy treats every server as healthy until its first checks have failed.
    await sleep(5000)
    opening.move()
    return bed
  }

  #run(name: string, [command, ...args]: string[]): ChildProcess {
    const log = openSync(join(this.folder, `${name}.log`), 'a')
    const child = spawn(command!, args, { stdio: ['ignore', log, log] })
    this.#children.push(child)
    return child
  }

  startMember(member: MemberName): void {
    const config = join(this.folder, `${member}.json`)
    mkdirSync(this.folder, { recursive: true })
    writeFileSync(config, JSON.stringify(patroniConfig(member, this.folder)))
    this.#run(member, [...inNamespace(member), ...asPostgres, this.#patroni, config])
  }

  /** Waits for a primary other than the member `not`. */
  async primary(seconds: number, not?: MemberName): Promise<MemberName> {
    for (const end = performance.now() + seconds * 1000; performance.now() < end; await sleep(100)) {
      const found = await findPrimary()
      if (found !== undefined && found !== not) return found
    }
    throw new Error(`no primary within ${seconds} s`)
  }

  /** Waits until a commit of this program succeeds. With synchronous replication, a new primary first waits for a standby. */
  async commits(member: MemberName, seconds: number): Promise<void> {
    for (const end = performance.now() + seconds * 1000; performance.now() < end; await sleep(100)) {
      const left = Math.max(end - performance.now(), 1)
      const at = { host: addressOf(member), user: 'postgres', database: 'postgres' }
      const client = new pg.Client({ ...at, connectionTimeoutMillis: 2000, query_timeout: left })
      client.on('error', () => {})
      try {
        await client.connect()
        await client.query('CREATE TABLE IF NOT EXISTS probe (time timestamptz DEFAULT now())')
        await client.query('INSERT INTO probe DEFAULT VALUES')
        return
      } catch {
        // The loop tries again.
      } finally {
        void client.end().catch(() => {})
      }
    }
    throw new Error(`${member} does not commit within ${seconds} s`)
  }

  /**
   * Waits until all members replicate from one leader. With `sync`, one of them must do so synchronously. A member may first have
   * to copy the database.
   */
  async healthy(mode: 'sync' | 'async', seconds = 600): Promise<void> {
    let last: unknown
    for (const end = performance.now() + seconds * 1000; performance.now() < end; await sleep(500)) {
      const leader = await findPrimary()
      if (!leader) continue
      const { members } = (await (await ask(leader, '/cluster')).json().catch(() => ({ members: [] }))) as {
        members: ClusterMember[]
      }
      last = members
      const streaming = members.filter(({ role, state }) => role !== 'leader' && state === 'streaming')
      const isSync = members.some(({ role }) => role === 'sync_standby')
      if (streaming.length === memberNames.length - 1 && (mode === 'async' || isSync)) return
    }
    throw new Error(`the cluster is not healthy after ${seconds} s: ${JSON.stringify(last)}`)
  }

  async setMode(mode: 'sync' | 'async'): Promise<void> {
    const on = mode === 'sync'
    const body = JSON.stringify({ synchronous_mode: on, synchronous_mode_strict: on })
    const answer = await ask(await this.primary(60), '/config', { method: 'PATCH', body })
    if (!answer.ok) throw new Error(`Patroni answered ${answer.status} to the change of its mode`)
    await this.healthy(mode)
  }

  /** Requests a planned change of the leader from Patroni. */
  async switchover(leader: MemberName): Promise<void> {
    const answer = await ask(leader, '/switchover', { method: 'POST', body: JSON.stringify({ leader }) })
    if (!answer.ok) throw new Error(`Patroni answered ${answer.status} to a switchover: ${await answer.text()}`)
  }

  #pids(member: MemberName): number[] {
    return text('ip', 'netns', 'pids', namespaceOf(member)).split('\n').filter(Boolean).map(Number)
  }

  /** Sends a signal to Patroni, to PostgreSQL and to all child processes. */
  signal(member: MemberName, signal: NodeJS.Signals): void {
    for (const pid of this.#pids(member)) {
      try {
        process.kill(pid, signal)
      } catch {
        // The process has already ended.
      }
    }
  }

  /** Drops all packets from and to a member, or only those from and to some addresses. */
  dropPackets(member: MemberName, others: readonly MemberName[] = []): void {
    const netfilter = (...rule: string[]) =>
      text(...(inNamespace(member) as [string]), 'iptables', '-A', ...rule, '-j', 'DROP')
    if (others.length === 0) {
      netfilter('INPUT', '-i', 'eth0')
      netfilter('OUTPUT', '-o', 'eth0')
    }
    for (const address of others.map(addressOf)) {
      netfilter('INPUT', '-s', address)
      netfilter('OUTPUT', '-d', address)
    }
  }

  restoreNetwork(member: MemberName): void {
    text(...(inNamespace(member) as [string]), 'iptables', '-F')
  }

  /** Starts a killed member. If it cannot start again, it gets a new copy of the data. */
  async revive(member: MemberName, mode: 'sync' | 'async'): Promise<void> {
    if (this.#pids(member).length === 0) this.startMember(member)
    try {
      await this.healthy(mode, 90)
    } catch {
      this.signal(member, 'SIGKILL')
      await sleep(500)
      rmSync(join(this.folder, member), { recursive: true, force: true })
      this.startMember(member)
      await this.healthy(mode)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const member of memberNames) {
      this.signal(member, 'SIGCONT')
      this.signal(member, 'SIGKILL')
    }
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    }
    rmSync(this.folder, { recursive: true, force: true })
  }
}
