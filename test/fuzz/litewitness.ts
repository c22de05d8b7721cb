// Runs litewitness, a transparency-log witness by Filippo Valsorda. To build it: `go install
// filippo.io/torchwood/cmd/litewitness@v0.9.0`. An SSH agent of its own holds its key. The logs that it accepts are written to
// its database, as its program witnessctl does.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { type NoteKey, vkeyOf } from '#lib/tlog/notes.ts'
import { cleanEnv, freeAddress } from '../support/process.ts'

/** Starts the witness. Returns its key and URL too, in the form of the server's settings. */
export async function startLitewitness(program: string, logs: readonly NoteKey[]) {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-litewitness-'))
  const [socket, database, key] = ['agent', 'witness.db', 'key'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  const children: ChildProcess[] = []
  const start = (command: string, args: readonly string[]): ChildProcess => {
    const child = spawn(command, args, { env: cleanEnv(), stdio: ['ignore', 'ignore', 'pipe'] })
    children.push(child)
    return child
  }
  const sh = (command: string, args: readonly string[], env: Record<string, string> = {}): string => {
    const done = spawnSync(command, args, { env: cleanEnv(env), encoding: 'utf8' })
    if (done.status !== 0) throw done.error ?? new Error(`${command}: ${done.stderr}`)
    return done.stdout
  }
  const stop = async (): Promise<void> => {
    for (const child of children.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill()
      await once(child, 'exit')
    }
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    sh('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key])
    const fingerprint = sh('ssh-keygen', ['-l', '-f', `${key}.pub`]).split(' ')[1]!
    start('ssh-agent', ['-D', '-a', socket])
    for (let tries = 0; ; tries++) {
      const added = spawnSync('ssh-add', ['-q', key], { env: cleanEnv({ SSH_AUTH_SOCK: socket }), encoding: 'utf8' })
      if (added.status === 0) break
      if (tries === 100) throw new Error(added.stderr)
      await sleep(50)
    }
    const listen = await freeAddress()
    const flags = ['-name', 'litewitness.example', '-ssh-agent', socket, '-key', fingerprint, '-db', database]
    const server = start(program, [...flags, '-listen', listen])
    const vkey = await new Promise<string>((resolve, reject) => {
      let said = ''
      server.stderr!.setEncoding('utf8').on('data', (text: string) => {
        said += text
        const found = /vkey="?([^"\s]+)[\s\S]*msg=listening/.exec(said)?.[1]
        if (found) resolve(found)
      })
      server.once('error', reject)
      server.once('exit', () => reject(new Error(said)))
    })
    const db = new DatabaseSync(database)
    const nothing = createHash('sha256').digest('base64')
    for (const log of logs) {
      db.prepare('INSERT INTO log (origin, tree_size, tree_hash) VALUES (?, 0, ?)').run(log.name, nothing)
      db.prepare('INSERT INTO key (origin, key) VALUES (?, ?)').run(log.name, vkeyOf(log))
    }
    db.close()
    return {
      setting: `${vkey} http://${listen}`,
      /** Latest checkpoint of each log that the witness has seen. Roots are in base64. */
      heads(): { origin: string; size: number; root: string }[] {
        const db = new DatabaseSync(database, { readOnly: true })
        const rows = db.prepare('SELECT origin, tree_size AS size, tree_hash AS root FROM log').all()
        db.close()
        return rows.map((row) => ({ ...row }) as { origin: string; size: number; root: string })
      },
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
