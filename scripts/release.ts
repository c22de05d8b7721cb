// `npm run release -- VERSION [--no-image]`: makes a release from a clean checkout. Sets the version, completes the changelog,
// commits and tags. Writes the sources, the container image and their checksums to build/release. Publishes nothing, but prints
// the commands that do. Reports problems before it changes anything.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import semver from 'semver'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'no-image': { type: 'boolean', default: false } },
})

const read = (name: string) => readFileSync(name, 'utf8')
const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8', maxBuffer: 1 << 30 }).trim()

/** Returns the release to make. If something prevents it, throws an error with all problems. */
function plan(): { version: string; changelog: string; notes: string } {
  const [version = ''] = positionals
  const current = (JSON.parse(read('package.json')) as { version: string }).version
  const problems: string[] = []
  if (positionals.length !== 1 || semver.valid(version) !== version) problems.push('give one version, such as 0.2.0')
  else if (!semver.gte(version, current)) problems.push(`${version} is before ${current}`)
  if (git('status', '--porcelain') !== '') problems.push('there are changes that are not committed')
  if (version !== '' && git('tag', '--list', `v${version}`) !== '') problems.push(`there is a tag v${version} already`)
  const changelog = read('CHANGELOG.md')
  const [, notes = ''] = /^## Unreleased\n([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(changelog) ?? []
  if (notes.trim() === '') problems.push('CHANGELOG.md says nothing under "Unreleased"')
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return { version, changelog, notes: notes.trim() }
}

/** File of the chart, whose version is the version of the server that it installs. */
const chart = 'examples/chart/Chart.yaml'

function writeVersion(version: string, changelog: string): void {
  writeFileSync('package.json', read('package.json').replace(/"version": "[^"]*"/, `"version": "${version}"`))
  const lock = JSON.parse(read('package-lock.json')) as {
    version: string
    packages: Record<string, { version: string }>
  }
  lock.version = version
  lock.packages['']!.version = version
  writeFileSync('package-lock.json', `${JSON.stringify(lock, null, 2)}\n`)
  writeFileSync(chart, read(chart).replaceAll(/^(version|appVersion): .*$/gm, `$1: ${version}`))
  const day = new Date().toISOString().slice(0, 10)
  writeFileSync('CHANGELOG.md', changelog.replace(/^## Unreleased$/m, `## Unreleased\n\n## ${version} (${day})`))
}

/** The same bytes for the same commit, on any machine. */
function writeSources(folder: string, name: string): void {
  const tar = execFileSync('git', ['archive', `--prefix=${name}/`, 'HEAD'], { maxBuffer: 1 << 30 })
  writeFileSync(join(folder, `${name}.tar.gz`), gzipSync(tar))
}

function writeImage(folder: string, name: string): void {
  const layout = join(folder, 'image')
  const time = git('log', '-1', '--format=%ct')
  const script = fileURLToPath(new URL('image/build.ts', import.meta.url))
  const env = { ...process.env, SOURCE_DATE_EPOCH: time }
  execFileSync(process.execPath, [script, '--out', layout], { env, stdio: 'inherit' })
  const fixed = ['--sort=name', `--mtime=@${time}`, '--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX']
  execFileSync('tar', [...fixed, '-cf', join(folder, `${name}-image.tar`), '-C', layout, '.'])
  rmSync(layout, { recursive: true })
}

function writeSums(folder: string): void {
  const lines = readdirSync(folder)
    .sort()
    .map((name) => {
      const hash = createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex')
      return `${hash}  ${name}\n`
    })
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''))
}

let tag = ''
try {
  const { version, changelog, notes } = plan()
  writeVersion(version, changelog)
  const written = ['package.json', 'package-lock.json', 'CHANGELOG.md', chart]
  git('commit', '--quiet', '-m', `Release ${version}`, '--', ...written)
  git('tag', '--annotate', '--cleanup=verbatim', '-m', `Pinfold ${version}\n\n${notes}\n`, `v${version}`)
  tag = `v${version}`
  const folder = join('build', 'release')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  writeSources(folder, `pinfold-${version}`)
  if (!values['no-image']) writeImage(folder, `pinfold-${version}`)
  writeSums(folder)
  console.log(`${folder} has the release. To publish it: git push --follow-tags, then put up what is in that folder.`)
  console.log('To take it back: git tag --delete, and git reset to the commit before.')
} catch (error) {
  console.error((error as Error).message)
  if (tag !== '') console.error(`To take back what was done: git tag --delete ${tag} && git reset --keep HEAD~1`)
  process.exitCode = 1
}
