// Worker process of `npm test`: runs one test file after another, and reports each test to the parent process. Modules are loaded
// once for all files. Hooks outside of tests run when their file begins and ends.
import asyncHooks from 'node:async_hooks'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'

const { createHook } = asyncHooks
// By default, the runner notes for each promise which test has created it, to name the test of an unhandled error. This makes
// promises ten times as slow. Without it, such an error fails the file, and the output names the test that ran.
asyncHooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false })
const { run } = await import('node:test')
asyncHooks.createHook = createHook

export type Report =
  | { kind: 'passed' | 'skipped'; name: string }
  | { kind: 'failed'; name: string; reason: string }
  | { kind: 'done'; memory: number }

/** Time limit of one test, and of the time after the last one. The parent process limits the whole file. */
const testMs = 300_000

async function runFile(file: string, report: (one: Report) => void): Promise<void> {
  const names: string[] = []
  const notes: string[] = []
  let failures = 0
  let succeeded = true
  let told = 0
  const failed = (name: string, reason: unknown) => {
    failures++
    told++
    report({ kind: 'failed', name, reason: typeof reason === 'string' ? reason : inspect(reason) })
  }
  const pathOf = (nesting: number, name: string) => [...names.slice(0, nesting), name].join(' > ')

  const stream = run({ files: [file], cwd: process.cwd(), isolation: 'none' })
  stream.on('test:start', ({ nesting, name }) => {
    names.length = nesting
    names[nesting] = name
  })
  stream.on('test:pass', ({ details, file: defined, name, nesting, skip, todo }) => {
    const isSkipped = skip !== undefined || todo !== undefined
    // The runner reports a file without tests as one test with the name of the file.
    const isFile = name === defined || name === file
    told++
    if (isSkipped) report({ kind: 'skipped', name: pathOf(nesting, name) })
    else if (details.type !== 'suite' && !isFile) report({ kind: 'passed', name: pathOf(nesting, name) })
  })
  stream.on('test:fail', ({ details, name, nesting, todo }) => {
    const { error } = details
    if (todo !== undefined) report({ kind: 'skipped', name: pathOf(nesting, name) })
    else if ((error as { failureType?: string }).failureType === 'subtestsFailed') failures++
    else failed(pathOf(nesting, name), error.cause ?? error)
  })
  let running = ''
  // The runner's own time limit does not end tests in a suite. A test cannot be stopped, so the process ends.
  const limit = setTimeout(() => {
    const open = process.getActiveResourcesInfo().join(', ')
    failed(running, `it did not end within ${testMs / 60_000} minutes, or left something open: ${open}`)
    process.disconnect()
  }, testMs).unref()
  stream.on('test:dequeue', ({ name }) => {
    running = name
    limit.refresh()
  })
  const unhandled = (error: unknown) => console.error(`unhandled error while "${running}" ran:`, error)
  process.on('unhandledRejection', unhandled).on('uncaughtException', unhandled)
  stream.on('test:diagnostic', ({ message }) => void notes.push(message))
  stream.on('test:summary', ({ success }) => {
    succeeded = success
  })
  stream.resume()
  await new Promise((resolve, reject) => stream.once('close', resolve).once('error', reject))
  clearTimeout(limit)
  process.off('unhandledRejection', unhandled).off('uncaughtException', unhandled)
  // The runner drops the error of a file that could not be loaded. A second import of the file throws this error again.
  await import(pathToFileURL(file).href).catch((error) => failed('loading the file', error))
  if (told === 0) failed('running the file', 'it has no tests')
  if (!succeeded && failures === 0)
    failed('outside of its tests', notes.filter((note) => note.startsWith('Error')).join('\n'))
}

process.on('message', async (file: string) => {
  // The runner ends a file when no server, timer or socket keeps the process alive. The channel to the parent must not keep it
  // alive.
  process.channel!.unref()
  const report = (one: Report) => void process.send!(one)
  await runFile(file, report).catch((error) =>
    report({ kind: 'failed', name: 'running the file', reason: inspect(error) }),
  )
  process.channel!.ref()
  report({ kind: 'done', memory: process.memoryUsage.rss() })
})
process.on('disconnect', () => process.exit(0))
