import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { cleanEnv, project } from '../support/process.ts'

/** A small project whose releases the test creates. */
function makeProject() {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-release-'))
  const who = Object.fromEntries(
    ['AUTHOR', 'COMMITTER'].flatMap((one) => [
      [`GIT_${one}_NAME`, 'a'],
      [`GIT_${one}_EMAIL`, 'a@b.test'],
    ]),
  )
  // Fixed time of commits, so that commits are reproducible.
  const env = { ...cleanEnv(), ...who, GIT_COMMITTER_DATE: '2026-11-01T12:00:00Z' }
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, env, encoding: 'utf8' })
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  const version = '0.1.0'
  write('package.json', `{\n  "name": "x",\n  "version": "${version}",\n  "bin": { "x": "x" }\n}\n`)
  write('package-lock.json', JSON.stringify({ name: 'x', version, packages: { '': { name: 'x', version } } }))
  write('CHANGELOG.md', '# Changelog\n\n## Unreleased\n\n- What is new.\n\n## 0.1.0 (2026-01-01)\n\n- The first.\n')
  mkdirSync(join(folder, 'examples/chart'), { recursive: true })
  write('examples/chart/Chart.yaml', `apiVersion: v2\nversion: ${version}\nappVersion: ${version}\n`)
  write('.gitignore', '/build/\n')
  git('init', '--quiet')
  git('add', '.')
  git('commit', '--quiet', '-m', 'First')
  return {
    folder,
    env,
    git,
    write,
    read: (name: string) => readFileSync(join(folder, name), 'utf8'),
    release: (...args: string[]) =>
      spawnSync(process.execPath, [join(project, 'scripts/release.ts'), ...args, '--no-image'], {
        cwd: folder,
        env,
        encoding: 'utf8',
      }),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

test('a release has its version, its part of the changelog, a tag, and valid checksums', () => {
  using made = makeProject()
  const { status, stderr } = made.release('0.2.0')
  assert.equal(status, 0, stderr)
  assert.match(made.read('package.json'), /"version": "0\.2\.0",\n {2}"bin": \{ "x": "x" \}/)
  const lock = JSON.parse(made.read('package-lock.json'))
  assert.deepEqual([lock.version, lock.packages[''].version], ['0.2.0', '0.2.0'])
  assert.equal(made.read('examples/chart/Chart.yaml'), 'apiVersion: v2\nversion: 0.2.0\nappVersion: 0.2.0\n')
  assert.match(
    made.read('CHANGELOG.md'),
    /## Unreleased\n\n## 0\.2\.0 \(\d{4}-\d\d-\d\d\)\n\n- What is new\.\n\n## 0\.1\.0/,
  )
  assert.equal(made.git('status', '--porcelain'), '')
  const tag = made.git('tag', '--list', '--format=%(contents)', 'v0.2.0')
  assert.match(tag, /^Pinfold 0\.2\.0\n\n- What is new\.\n/)
  assert.ok(!tag.includes('The first'))
  const folder = join(made.folder, 'build/release')
  execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: folder, stdio: 'ignore' })
  const listed = execFileSync('tar', ['-tzf', join(folder, 'pinfold-0.2.0.tar.gz')], { encoding: 'utf8' })
  assert.ok(listed.includes('pinfold-0.2.0/CHANGELOG.md'))
})

/** Replaces the image builder, which needs minutes and packages: writes a layout that records its arguments. */
const builder = `import { mkdirSync, writeFileSync } from 'node:fs'
const out = process.argv[process.argv.indexOf('--out') + 1]!
mkdirSync(out + '/blobs/sha256', { recursive: true })
writeFileSync(out + '/oci-layout', '{"imageLayoutVersion":"1.0.0"}')
writeFileSync(out + '/index.json', JSON.stringify({ time: process.env.SOURCE_DATE_EPOCH }))
writeFileSync(out + '/blobs/sha256/' + 'b'.repeat(64), 'a blob')
`

test('a release contains the image of its commit as one reproducible file, with its checksum', () => {
  using made = makeProject()
  mkdirSync(join(made.folder, 'scripts/image'), { recursive: true })
  cpSync(join(project, 'scripts/release.ts'), join(made.folder, 'scripts/release.ts'))
  made.write('scripts/image/build.ts', builder)
  made.write('.gitignore', '/build/\n/node_modules\n')
  symlinkSync(join(project, 'node_modules'), join(made.folder, 'node_modules'))
  made.git('add', '.')
  made.git('commit', '--quiet', '-m', 'Scripts')
  const release = (version: string) => {
    const args = [join(made.folder, 'scripts/release.ts'), version]
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: made.folder, env: made.env, encoding: 'utf8' })
    assert.equal(status, 0, stderr)
    return readFileSync(join(made.folder, `build/release/pinfold-${version}-image.tar`))
  }
  const first = release('0.2.0')
  const folder = join(made.folder, 'build/release')
  assert.deepEqual(readdirSync(folder).sort(), ['SHA256SUMS', 'pinfold-0.2.0-image.tar', 'pinfold-0.2.0.tar.gz'])
  execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: folder, stdio: 'ignore' })
  const list = (...how: string[]) =>
    execFileSync('tar', [...how, 'pinfold-0.2.0-image.tar'], { cwd: folder, encoding: 'utf8' })
      .trim()
      .split('\n')
  const blob = `./blobs/sha256/${'b'.repeat(64)}`
  const files = ['./', './blobs/', './blobs/sha256/', blob, './index.json', './oci-layout']
  assert.deepEqual(list('-tf').sort(), files)
  for (const line of list('--numeric-owner', '-tvf')) assert.match(line, /^[d-]rw[x-]r-[x-]r-[x-] 0\/0 /)
  // The image and the files in the archive have the time of the commit.
  const time = made.git('log', '-1', '--format=%ct').trim()
  const index = execFileSync('tar', ['-xOf', 'pinfold-0.2.0-image.tar', './index.json'], {
    cwd: folder,
    encoding: 'utf8',
  })
  assert.deepEqual(JSON.parse(index), { time })
  const stamps = execFileSync('tar', ['--utc', '--full-time', '-tvf', 'pinfold-0.2.0-image.tar'], {
    cwd: folder,
    encoding: 'utf8',
  })
  const stamp = new Date(Number(time) * 1000).toISOString().replace('T', ' ').slice(0, 19)
  for (const line of stamps.trim().split('\n')) assert.ok(line.includes(stamp), line)
  // Builds the same commit again, as another person.
  made.git('tag', '--delete', 'v0.2.0')
  made.git('reset', '--quiet', '--hard', 'HEAD~1')
  assert.ok(release('0.2.0').equals(first))
})

test('a failed image build leaves no release that looks complete', () => {
  using made = makeProject()
  mkdirSync(join(made.folder, 'scripts/image'), { recursive: true })
  cpSync(join(project, 'scripts/release.ts'), join(made.folder, 'scripts/release.ts'))
  made.write('scripts/image/build.ts', 'process.exit(3)\n')
  made.write('.gitignore', '/build/\n/node_modules\n')
  symlinkSync(join(project, 'node_modules'), join(made.folder, 'node_modules'))
  made.git('add', '.')
  made.git('commit', '--quiet', '-m', 'Scripts')
  const args = [join(made.folder, 'scripts/release.ts'), '0.2.0']
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: made.folder,
    env: made.env,
    encoding: 'utf8',
  })
  assert.deepEqual([status, stdout], [1, ''])
  const [, back] = /^To take back what was done: (git .*)$/m.exec(stderr) ?? []
  execFileSync('sh', ['-ec', back!], { cwd: made.folder, env: made.env })
  assert.deepEqual([made.git('tag'), made.git('log', '-1', '--format=%s').trim()], ['', 'Scripts'])
  assert.deepEqual(
    readdirSync(join(made.folder, 'build/release')).filter((name) => name === 'SHA256SUMS'),
    [],
  )
})

test('names problems that prevent a release before changing anything', () => {
  using made = makeProject()
  const refused = (args: string[], reason: RegExp) => {
    const { status, stderr } = made.release(...args)
    assert.equal(status, 1)
    assert.match(stderr, reason)
  }
  refused([], /give one version/)
  refused(['v1'], /give one version/)
  refused(['0.0.9'], /0\.0\.9 is before 0\.1\.0/)
  made.git('tag', 'v0.3.0')
  refused(['0.3.0'], /there is a tag v0\.3\.0 already/)
  made.write('CHANGELOG.md', '# Changelog\n\n## Unreleased\n\n## 0.1.0 (2026-01-01)\n\n- The first.\n')
  refused(['0.2.0'], /not committed\nCHANGELOG\.md says nothing under "Unreleased"/)
  assert.equal(made.git('tag').trim(), 'v0.3.0')
  assert.equal(made.git('log', '--format=%s').trim(), 'First')
})
