import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { cleanEnv, project } from '../support/process.ts'

/** A small project of which releases can be made. */
function makeProject() {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-release-'))
  const who = Object.fromEntries(
    ['AUTHOR', 'COMMITTER'].flatMap((one) => [
      [`GIT_${one}_NAME`, 'a'],
      [`GIT_${one}_EMAIL`, 'a@b.test'],
    ]),
  )
  const env = { ...cleanEnv(), ...who }
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

test('a release has its version, its part of the changelog, a tag with it, and checksums that hold', () => {
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

test('what is in the way of a release is said before anything is changed', () => {
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
