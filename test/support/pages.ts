// Runs the shell blocks of a documentation page exactly as they are written.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Env, project, runProcess, type TestStorage } from './process.ts'

/** Shell blocks of a page, or of one of its sections. */
export function blocksOf(page: string, section?: string): string[] {
  const text = readFileSync(join(project, page), 'utf8')
  const part = section ? new RegExp(`^## ${section}\\n([\\s\\S]*?)^## `, 'm').exec(text)![1]! : text
  return [...part.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1]!)
}

/** Clients that are missing on the PATH. */
export async function missing(...clients: string[]): Promise<string[]> {
  const found = await Promise.all(clients.map((name) => runProcess(['-c', `command -v ${name}`], { command: 'sh' })))
  return clients.filter((_, index) => found[index]!.code !== 0)
}

/**
 * Runs blocks, and returns the lines that each block printed. Replaces only the hosts and the data folder, which differ from
 * those of `npm start`. Waits a second before a block that prints the time: `date` prints whole seconds, and a reader takes longer
 * than that to paste a block. With `quiet`, fails if a block prints on standard error.
 */
export async function paste(
  blocks: readonly string[],
  storage: TestStorage,
  hosts: Env,
  { quiet = true, env: more = {} }: { quiet?: boolean; env?: Env } = {},
): Promise<string[][]> {
  const script = Object.entries(hosts).reduce(
    (text, [written, real]) => text.replaceAll(written, real),
    blocks.map((block) => `${block.includes('date -u') ? 'sleep 1\n' : ''}${block}echo --- >&2; echo ---\n`).join(''),
  )
  const api = hosts['127.0.0.1:8080']
  const named = storage.database
    ? { PINFOLD_DATABASE: storage.database, ...(api && { PINFOLD_API: `http://${api}` }) }
    : {}
  const env = { ...storage.env, ...named, ...more }
  const args = ['-euc', script.replaceAll('--data data', `--data ${storage.data}`)]
  const { code, stdout, stderr } = await runProcess(args, { command: 'sh', env })
  assert.equal(code, 0, stdout + stderr)
  if (quiet) assert.equal(stderr.replaceAll('---\n', ''), '')
  return stdout.split('---\n').map((output) => output.trim().split('\n').filter(Boolean))
}
