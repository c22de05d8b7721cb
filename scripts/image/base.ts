// System libraries that Node needs: the C and C++ libraries, as Debian packages with checksums in base.json.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Entry, entriesBelow } from './entries.ts'
import type { Architecture } from './platforms.ts'

export type DebianPackage = { name: string; version: string; sha256: string }

const lockFile = new URL('base.json', import.meta.url)
const names = ['gcc-12-base', 'libc6', 'libgcc-s1', 'libstdc++6']

/** User that the server runs as. */
export const userId = 65_532

/**
 * Unpacked packages, in the versions of the lock file. With `update`, takes the newest versions and writes them to the lock file.
 */
export function baseEntries(
  architecture: Architecture,
  { work, sources, update }: { work: string; sources: string; update: boolean },
): { packages: DebianPackage[]; entries: Entry[] } {
  const lock = JSON.parse(readFileSync(lockFile, 'utf8')) as Record<Architecture, DebianPackage[]>
  const folder = join(work, `debian-${architecture}`)
  for (const name of ['debs', 'lists/partial', 'cache/archives/partial', 'state', 'root']) {
    mkdirSync(join(folder, name), { recursive: true })
  }
  const apt = (...args: string[]) =>
    execFileSync('apt-get', [...aptOptions(folder, architecture, sources), '-qq', ...args], {
      cwd: join(folder, 'debs'),
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  apt('update')
  apt('download', ...(update ? names : lock[architecture].map(({ name, version }) => `${name}=${version}`)))
  const found = readdirSync(join(folder, 'debs'))
    .sort()
    .map((file) => packageOf(join(folder, 'debs', file)))
  if (update) {
    const next = { ...lock, [architecture]: found.map(({ path: _path, ...one }) => one) }
    writeFileSync(lockFile, `${JSON.stringify(next, null, 2)}\n`)
  }
  const packages = found.map(({ path, ...one }) => {
    const wanted = update ? one : lock[architecture].find(({ name }) => name === one.name)
    if (wanted?.sha256 !== one.sha256)
      throw new Error(`${one.name} for ${architecture} is not the package of base.json`)
    execFileSync('dpkg-deb', ['-x', path, join(folder, 'root')])
    return one
  })
  const isNeeded = (path: string) =>
    path.endsWith('/copyright') || (/^(?:usr\/)?lib(?:64)?\//.test(path) && /\.so(?:\.\d+)*$/.test(path))
  const isPlugin = (path: string) => /\/(?:gconv|audit)\//.test(path)
  return {
    packages,
    entries: [...entriesBelow(join(folder, 'root'), '', (path) => isNeeded(path) && !isPlugin(path)), ...systemFiles],
  }
}

const text = (path: string, content: string): Entry => ({ path, mode: 0o644, content: Buffer.from(content) })

const systemFiles: Entry[] = [
  text('etc/passwd', `root:x:0:0:root:/:/sbin/nologin\npinfold:x:${userId}:${userId}:pinfold:/:/sbin/nologin\n`),
  text('etc/group', `root:x:0:\npinfold:x:${userId}:\n`),
  text('etc/nsswitch.conf', 'hosts: files dns\n'),
  { path: 'var/lib/pinfold', mode: 0o700, owner: userId },
  { path: 'tmp', mode: 0o1777 },
  { path: 'proc', mode: 0o755 },
  { path: 'dev', mode: 0o755 },
]

function packageOf(path: string): DebianPackage & { path: string } {
  const field = (name: string) => execFileSync('dpkg-deb', ['-f', path, name], { encoding: 'utf8' }).trim()
  const sha256 = createHash('sha256').update(readFileSync(path)).digest('hex')
  return { path, name: field('Package'), version: field('Version'), sha256 }
}

/** apt gets separate folders, so it needs no root rights and does not change the machine's packages. */
function aptOptions(folder: string, architecture: Architecture, sources: string): string[] {
  const options = {
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': '',
    'Dir::State': join(folder, 'state'),
    'Dir::State::lists': join(folder, 'lists'),
    'Dir::State::status': '/dev/null',
    'Dir::Cache': join(folder, 'cache'),
    'Dir::Etc::sourcelist': sources,
    'Dir::Etc::sourceparts': '-',
  }
  return Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])
}
