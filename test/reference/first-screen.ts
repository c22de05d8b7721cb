// The first screen of the README on a fresh clone, word for word, as the transcript in docs/first-hour.md.
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { cleanEnv, freeAddress, project } from '../support/process.ts'

const written = '127.0.0.1:8080'

/** Commands of the README after `npm start`. */
function quickStart(): string {
  const [, section] = /^## Quick start\n([\s\S]*?)^## /m.exec(readFileSync(join(project, 'README.md'), 'utf8'))!
  return /^```sh\n([\s\S]*?)^```$/m.exec(section!)![1]!
}

/** `npm start` in the clone; only the port differs, since somebody else may have the usual one. */
async function npmStart(clone: string, env: Record<string, string>, listen: string) {
  const server = spawn('npm', ['start'], {
    cwd: clone,
    env: { ...env, PINFOLD_LISTEN: listen },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(server, 'close')
  let output = ''
  await new Promise<void>((resolve, reject) => {
    for (const stream of [server.stdout, server.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
        if (/^ready /m.test(output)) resolve()
      })
    }
    server.once('close', () => reject(new Error(`npm start ended: ${output}`)))
  })
  return {
    /** Text that a new user reads first. */
    first: /^ready .*$/m.exec(output)![0],
    async [Symbol.asyncDispose]() {
      server.kill('SIGTERM')
      await exited
    },
  }
}

/**
 * Packages as `npm ci` would install them, which is not done here since it downloads. The folder belongs to the clone and has
 * links in it: `npm ci` would empty a folder that is itself a link for everybody.
 */
function linkPackages(folder: string): void {
  const ours = join(project, 'node_modules')
  mkdirSync(folder)
  for (const name of readdirSync(ours)) {
    if (!name.startsWith('.') || name === '.bin') symlinkSync(join(ours, name), join(folder, name))
  }
  // Newer than the lock file of the clone, so nothing is missing.
  writeFileSync(join(folder, '.package-lock.json'), readFileSync(join(ours, '.package-lock.json')))
}

/** Each command of the block with what it printed, after the clone and the start; throws where one fails. */
export async function playFirstScreen(): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), 'pinfold-newcomer-'))
  try {
    const clone = join(home, 'pinfold')
    execFileSync('git', ['clone', '--quiet', '--local', project, clone])
    linkPackages(join(clone, 'node_modules'))
    const env = { ...cleanEnv(), HOME: home, DOCKER_CONFIG: join(home, '.docker'), PINFOLD_LOG_LEVEL: 'warn' }
    const listen = await freeAddress()
    await using server = await npmStart(clone, env, listen)
    const block = quickStart()
    assert.ok(block.trim().split('\n').length <= 15, 'at most fifteen lines')
    const parts = [`$ npm start\n…\n${server.first}`]
    // Variables go from one line to the next, so every line runs in the same shell, which says where each begins.
    const lines = block.split('\n').filter((line) => line.trim() !== '')
    const script = lines
      .map((line, i) => `echo '=== ${i}'\n${line}\n`)
      .join('')
      .replaceAll(written, listen)
    const done = spawnSync('sh', ['-eu'], { input: script, cwd: clone, env, encoding: 'utf8', timeout: 120_000 })
    assert.equal(done.status, 0, `${done.stdout}\n${done.stderr}`)
    for (const [i, line] of lines.entries()) {
      const [, said = ''] = new RegExp(`^=== ${i}\\n([\\s\\S]*?)(?=^=== |$(?![\\s\\S]))`, 'm').exec(done.stdout) ?? []
      parts.push(`$ ${line}\n${said}`.trimEnd())
    }
    const moves = done.stdout.match(/sha256:[0-9a-f]{64}/g) ?? []
    assert.ok(new Set(moves).size >= 2, `a look-back names two digests: ${done.stdout}`)
    assert.match(done.stdout, /^README\.md$/m)
    const shown = parts.join('\n').replaceAll(listen, written).replaceAll(home, '~')
    return `## The first screen\n\n\`\`\`console\n${plain(shown)}\n\`\`\`\n\nExit code 0.\n`
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** Without what differs from run to run. */
function plain(text: string): string {
  return text
    .replaceAll(`${userInfo().username} on ${hostname()}`, 'you on laptop')
    .replace(/sha256:[0-9a-f]{64}/g, 'sha256:…')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/\b[0-9a-f]{40}(?:\/[0-9a-f]{16})*\b/g, 'UID')
}
