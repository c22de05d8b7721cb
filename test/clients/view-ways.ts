// Methods of various clients to pull through a view.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleanEnv, runProcess } from '../support/process.ts'

/** Folder of this run. The caller removes it. */
export const folder = mkdtempSync(join(tmpdir(), 'pinfold-views-'))
export const image = 'acme/app'

export type Done = { code: number; out: string; all: string }

export function sh(command: string, args: readonly string[], env: Record<string, string> = {}): Done {
  const options = { cwd: folder, env: { ...cleanEnv(), ...env }, encoding: 'utf8', maxBuffer: 64 << 20 } as const
  const done = spawnSync(command, args, options)
  if (done.error) throw done.error
  return { code: done.status ?? 1, out: done.stdout.trim(), all: done.stdout + done.stderr }
}

/** Runs a command without blocking, so that others can run at the same time. */
export async function play(command: string, args: readonly string[], env: Record<string, string> = {}): Promise<Done> {
  const { code, stdout, stderr } = await runProcess(args, { command, cwd: folder, env })
  return { code: code ?? 1, out: stdout.trim(), all: stdout + stderr }
}

export const write = (name: string, content: string): string => {
  writeFileSync(join(folder, name), content)
  return join(folder, name)
}
export const isThere = (name: string): boolean => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0

export type Scene = { host: string; mirror: string; token: string; env: Record<string, string>; authfile: string }

export type Pulled = Done & { digest: string }

/** Pulls a tag through the view and returns the digest that the client reports. Default tag: `stable`. */
export type Way = {
  client: string
  version: () => string
  how: string
  pull: (view: string, tag?: string) => Promise<Pulled>
}

export const digestIn = ({ all }: Done): string => /sha256:[0-9a-f]{64}/.exec(all)?.[0] ?? ''
let count = 0
export const fresh = (): string => {
  const name = join(folder, `out-${count++}`)
  mkdirSync(name)
  return name
}
export const firstWord = (text: string): string => /\d+\.\d+\.\d+/.exec(text)?.[0] ?? '?'

/** Clients for which the view is part of the image's name. */
export function byName({ host, env, authfile }: Scene): Way[] {
  const ref = (view: string, tag = 'stable') => `${host}/${view}/${image}:${tag}`
  // The file is written before any command runs that reads it.
  const policyFile = write('policy.json', JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }))
  const policy = ['--policy', policyFile]
  const regctl = { REGCTL_CONFIG: join(folder, 'regctl.json'), ...env }
  if (isThere('regctl')) sh('regctl', ['registry', 'set', '--tls', 'disabled', '--skip-check', host], regctl)
  const both = async (first: Promise<Done>, then: () => Promise<Done>): Promise<Pulled> => {
    const [said, done] = [await first, await then()]
    return { code: said.code || done.code, out: done.out, all: said.all + done.all, digest: digestIn(said) }
  }
  const ways: Way[] = [
    {
      client: 'crane',
      version: () => goVersion('crane', 'go-containerregistry'),
      how: 'the name',
      pull: (view, tag) =>
        both(play('crane', ['digest', ref(view, tag)], env), () =>
          play('crane', ['pull', ref(view, tag), `${fresh()}/i.tar`], env),
        ),
    },
    {
      client: 'oras',
      version: () => firstWord(sh('oras', ['version']).out),
      how: 'the name',
      pull: (view, tag) =>
        both(play('oras', ['resolve', '--plain-http', ref(view, tag)], env), () =>
          play('oras', ['copy', '--from-plain-http', ref(view, tag), '--to-oci-layout', `${fresh()}:v1`], env),
        ),
    },
    {
      client: 'regctl',
      version: () => goVersion('regctl', 'regclient'),
      how: 'the name',
      pull: (view, tag) =>
        both(play('regctl', ['image', 'digest', ref(view, tag)], regctl), () =>
          play('regctl', ['image', 'copy', ref(view, tag), `ocidir://${fresh()}:v1`], regctl),
        ),
    },
    {
      client: 'skopeo',
      version: () => firstWord(sh('skopeo', ['--version']).out),
      how: 'the name',
      pull: (view, tag) => {
        const from = ['--authfile', authfile]
        const inspect = [
          'inspect',
          ...from,
          '--tls-verify=false',
          '--format',
          '{{.Digest}}',
          `docker://${ref(view, tag)}`,
        ]
        return both(play('skopeo', inspect), () =>
          play('skopeo', [
            ...policy,
            'copy',
            ...from,
            '--src-tls-verify=false',
            `docker://${ref(view, tag)}`,
            `oci:${fresh()}:v1`,
          ]),
        )
      },
    },
    {
      client: 'podman',
      version: podmanVersion,
      how: 'the name',
      pull: (view, tag) => podman({ host, authfile, policyFile, isNamed: true }, view, tag),
    },
    {
      client: 'podman',
      version: podmanVersion,
      how: '`registries.conf`',
      pull: (view, tag) => podman({ host, authfile, policyFile, isNamed: false }, view, tag),
    },
  ]
  return ways.filter(({ client }) => isThere(client))
}

const podmanVersion = (): string => firstWord(sh('podman', ['--version']).out)

export function goVersion(name: string, part: string): string {
  const path = sh('sh', ['-c', `command -v ${name}`]).out
  const lines = sh('go', ['version', '-m', path]).out.split('\n')
  return firstWord(lines.find((line) => line.includes(part) && /\bv\d/.test(line)) ?? '')
}

type Podman = { host: string; authfile: string; policyFile: string; isNamed: boolean }

async function podman({ host, authfile, policyFile, isNamed }: Podman, view: string, tag = 'stable'): Promise<Pulled> {
  const out = fresh()
  const registry = isNamed
    ? `[[registry]]\nprefix = "${host}"\nlocation = "${host}"\ninsecure = true\n`
    : `[[registry]]\nprefix = "${host}/acme"\nlocation = "${host}/${view}/acme"\ninsecure = true\n`
  const conf = write(`registries-${count}.conf`, registry)
  const at = ['--root', `${out}/root`, '--runroot', `${out}/run`, '--storage-driver', 'vfs']
  const name = isNamed ? `${host}/${view}/${image}:${tag}` : `${host}/${image}:${tag}`
  const env = { CONTAINERS_REGISTRIES_CONF: conf, HOME: folder }
  const pull = ['pull', '--authfile', authfile, '--signature-policy', policyFile, name]
  const pulled = await play('podman', [...at, ...pull], env)
  const shown =
    pulled.code === 0
      ? await play('podman', [...at, 'image', 'inspect', '--format', '{{.Digest}} {{.NamesHistory}}', name], env)
      : pulled
  // The pulled image keeps the name that was requested.
  const isSame = isNamed || shown.out.includes(`${host}/${image}:${tag}`)
  return { ...shown, code: isSame ? shown.code : 1, all: pulled.all + shown.all, digest: digestIn(shown) }
}

/**
 * A containerd daemon with separate folders, if the machine has containerd. It pulls with hosts.toml as in
 * docs/reference/views.md.
 */
export async function startContainerd() {
  if (!(isThere('containerd') && isThere('ctr'))) return { ways: (): Way[] => [], [Symbol.dispose]() {} }
  const at = join(folder, 'containerd')
  mkdirSync(at)
  const socket = `${at}/c.sock`
  const config = write(
    'containerd.toml',
    `version = 2\nroot = "${at}/root"\nstate = "${at}/state"\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\n  address = "${socket}"\n[ttrpc]\n  address = "${at}/t.sock"\n`,
  )
  const daemon = spawn('containerd', ['--config', config, '--log-level', 'error'], { stdio: 'ignore' })
  for (let left = 200; left > 0 && !existsSync(socket); left--) await sleep(100)
  const ctr = (...args: string[]) => play('ctr', ['-a', socket, '-n', 'views', ...args])
  const pullOf =
    ({ host, token }: Scene): Way['pull'] =>
    async (view, tag = 'stable') => {
      const hosts = fresh()
      const through = `http://${host}/v2/${view}`
      const text = `server = "${through}"\n[host."${through}"]\n  capabilities = ["pull", "resolve"]\n  override_path = true\n`
      for (const name of [host, `${host.replace(':', '_')}_`]) {
        mkdirSync(`${hosts}/${name}`)
        writeFileSync(`${hosts}/${name}/hosts.toml`, text)
      }
      const name = `${host}/${image}:${tag}`
      await ctr('image', 'rm', name)
      const pulled = await ctr('content', 'fetch', '--hosts-dir', hosts, '--user', `_token:${token}`, name)
      const listed = pulled.code === 0 ? await ctr('image', 'ls', `name==${name}`) : pulled
      return { ...listed, all: pulled.all + listed.all, digest: digestIn(listed) }
    }
  return {
    ways: (scene: Scene): Way[] => [
      {
        client: 'containerd',
        version: () => firstWord(sh('containerd', ['--version']).out),
        how: '`hosts.toml`',
        pull: pullOf(scene),
      },
    ],
    [Symbol.dispose]: () => void daemon.kill('SIGKILL'),
  }
}
