// Runs a command in this process. Only this file may end the process.

import { visible } from '#lib/terminal/plain-text.ts'
import { exitCodes } from './cli/framework/cli-error.ts'
import type { Terminal } from './cli/framework/command.ts'
import { runCommandLine } from './command-line.ts'

let isOutputLost = false

const terminal: Terminal = {
  env: process.env,
  input: async () => (await import('node:stream/consumers')).text(process.stdin),
  print: (line) => void process.stdout.write(`${line}\n`),
  isSeen: isSeen(),
  ownsProcess: true,
  // Makes control characters visible, since the text may contain data from a server.
  say: (text) => void process.stderr.write(`${text.split('\n').map(visible).join('\n')}\n`),
  ...(process.stderr.isTTY ? { status: (line) => void process.stderr.write(`\r\x1b[K${line}`) } : {}),
  ...(process.stdin.isTTY && process.stderr.isTTY ? { ask } : {}),
  preferred: async () => (await import('./cli/framework/preferences.ts')).preferredOptions(process.env),
  untilSignaled: () =>
    new Promise((resolve) => {
      // Signals may arrive twice: npm forwards a Ctrl-C that the terminal has already sent.
      for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve())
    }),
}

// Handles errors of the output. A reader such as `head` may close it early, which is no error. Any other error ends a command,
// since its output is incomplete. A server continues without output.
process.stderr.on('error', () => {})
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE' || isOutputLost) return
  isOutputLost = true
  terminal.say(`pinfold: standard output cannot be written: ${error.message}`)
  if (process.argv[2] !== 'serve') process.exit(exitCodes.failed)
})

/**
 * True if a person reads the output and it is not stored. Container runtimes store output even if there is a terminal. In a
 * container, the main process has the ID 1, or the variable `container` is set.
 */
function isSeen(): boolean {
  return process.stdin.isTTY && process.stdout.isTTY && process.pid !== 1 && !process.env.container
}

async function ask(question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises')
  using lines = createInterface({ input: process.stdin, output: process.stderr })
  // At the end of the input, readline never answers the question. The answer is then empty.
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')))
  return await Promise.race([lines.question(visible(question)), ended])
}

void runCommandLine(terminal, process.argv).then((code) => {
  process.exitCode = code
  if (code !== exitCodes.ok) process.exit()
})
