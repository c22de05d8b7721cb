// Executable: Node, the bundle and its files in one file. The same sources and the same Node make the same bytes.
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { root } from '../run.ts'
import { assetFiles, script, writeBundle } from './bundle.ts'

/** V8 flags of `bin/pinfold`. The blob must be built with the same flags, or Node rejects its compiled code at each start. */
const flags = ['--expose-gc', '--max-semi-space-size=8', '--v8-pool-size=1']
/** Node looks for this text in its binary, to find out whether it has a blob. */
const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'

/** Writes the executable `pinfold` to a folder, for the platform of the Node that runs this code. Returns its path. */
export async function writeExecutable(folder: string): Promise<string> {
  const out = resolve(folder)
  const work = join(out, 'work')
  mkdirSync(out, { recursive: true })
  await writeBundle(work)
  // A relative path, since the blob has the path of the script. An absolute one would make different bytes in each folder.
  const config = {
    main: script,
    output: 'blob',
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
    execArgv: flags,
    assets: Object.fromEntries(assetFiles().map((path) => [path, path])),
  }
  writeFileSync(join(work, 'sea.json'), JSON.stringify(config))
  // `--predictable` makes the compiled code the same in each build.
  const toBlob = [...flags, '--predictable', '--experimental-sea-config', 'sea.json']
  execFileSync(process.execPath, toBlob, { cwd: work, env: {}, stdio: 'pipe' })
  const file = join(out, 'pinfold')
  rmSync(file, { force: true })
  copyFileSync(process.execPath, file)
  chmodSync(file, 0o755)
  // Its warnings about the names of notes in the binary are harmless. If it fails, the error has its output.
  const postject = join(root, 'node_modules/postject/dist/cli.js')
  const inject = [postject, file, 'NODE_SEA_BLOB', join(work, 'blob'), '--sentinel-fuse', fuse]
  execFileSync(process.execPath, inject, { stdio: 'pipe' })
  rmSync(work, { recursive: true })
  return file
}
