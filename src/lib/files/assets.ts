// Files that come with the program. They are in the folder of the sources, in the folder of a bundle, or embedded in the executable.
import { readdirSync, readFileSync } from 'node:fs'
import { getAssetKeys, getRawAsset, isSea } from 'node:sea'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** Folder of the bundle, and path from there to the file that runs it. The build replaces both names (`scripts/bundle`). */
declare const bundleFolder: string | undefined
declare const bundleProgram: string

/** Folder with the files. Undefined in the executable. */
const root =
  typeof bundleFolder === 'undefined'
    ? new URL('../../../', import.meta.url)
    : isSea()
      ? undefined
      : pathToFileURL(`${bundleFolder}/`)

/** Reads the file with this path, such as `gen/openapi.json`. */
export function readAsset(path: string): Buffer {
  return root ? readFileSync(new URL(path, root)) : Buffer.from(getRawAsset(path) as ArrayBuffer)
}

/** Names of the files in a folder, such as `docs/api/`. */
export function listAssets(folder: string): string[] {
  if (root) return readdirSync(new URL(folder, root))
  return getAssetKeys().flatMap((key) => (key.startsWith(folder) ? [key.slice(folder.length)] : []))
}

/** Script of a worker thread. It must not import other files. */
export function threadScript(path: string): URL {
  if (root) return new URL(path, root)
  // The executable has no file that a thread could load. A data URL needs none, and may be a module.
  return new URL(`data:text/javascript;base64,${readAsset(path).toString('base64')}`)
}

/** File that runs Pinfold, for commands that users paste. For an executable on the PATH, its name. */
export function programFile(): string {
  if (root) return fileURLToPath(new URL(typeof bundleFolder === 'undefined' ? 'bin/pinfold' : bundleProgram, root))
  return process.argv0.includes('/') ? process.execPath : process.argv0
}

/**
 * Command that starts Pinfold again as another process, with the same Node and without the flags of the launcher. `options` are
 * options of Node.
 */
export function restarted(options: readonly string[]): { file: string; args: string[]; env: NodeJS.ProcessEnv } {
  if (!root) return { file: process.execPath, args: [], env: { NODE_OPTIONS: options.join(' ') } }
  const script = typeof bundleFolder === 'undefined' ? 'src/main.ts' : 'pinfold.cjs'
  return { file: process.execPath, args: [...options, fileURLToPath(new URL(script, root))], env: {} }
}
