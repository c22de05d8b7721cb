// Bundle of the program: one script, and the files that it reads. It starts faster than the sources and needs no node_modules.
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { build, type Metafile, type Plugin } from 'esbuild'
import protobuf from 'protobufjs'
import { migrationIds } from '#db/migration-ids.ts'
import { root } from '../run.ts'
import { noticesOf } from './packages.ts'

/** Files and folders that the program reads, by path. */
const assets = [
  'package.json',
  'gen/openapi.json',
  'gen/openapi-v1.json',
  'gen/mcp-tools.json',
  'gen/console',
  'docs/errors.md',
  'docs/api',
  'src/db/sqlite/checkpoint-thread.mjs',
  'src/db/sqlite/snapshot-thread.mjs',
]
const launchers = ['bin/pinfold', 'bin/pinfold-node', 'bin/docker-credential-pinfold']

/** Paths of all assets. */
export function assetFiles(): string[] {
  return assets.flatMap((path) => {
    if (/\.\w+$/.test(path)) return [path]
    return readdirSync(join(root, path)).map((name) => `${path}/${name}`)
  })
}

/** Name of the script in a bundle. */
export const script = 'pinfold.cjs'

/** Script of the whole program, and the list of its input files. `program` is the path from the bundle to the file that runs it. */
async function bundleScript(program: string): Promise<{ code: Uint8Array; metafile: Metafile }> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['src/main.ts'],
    bundle: true,
    write: false,
    metafile: true,
    minify: true,
    keepNames: true,
    platform: 'node',
    format: 'cjs',
    target: 'node24',
    charset: 'utf8',
    legalComments: 'none',
    define: {
      bundleFolder: '__dirname',
      bundleProgram: JSON.stringify(program),
      bundledMigrations: JSON.stringify(migrationIds()),
      // Only `assets.ts` uses it, for the sources.
      'import.meta.url': '""',
    },
    plugins: [protoFiles, requires],
    // Optional parts of `pg` that are not installed.
    external: ['pg-native', 'pg-cloudflare'],
  })
  return { code: outputFiles[0]!.contents, metafile }
}

/**
 * Writes the bundle to a folder. Former contents are replaced at the end, so an interrupted build leaves a whole bundle or none.
 * `program` is the path from the folder to the file that users run.
 */
export async function writeBundle(folder: string, program = 'bin/pinfold'): Promise<Metafile> {
  const part = `${folder}.${process.pid}`
  rmSync(part, { recursive: true, force: true })
  const { code, metafile } = await bundleScript(program)
  for (const path of [...assetFiles(), ...launchers]) {
    mkdirSync(dirname(join(part, path)), { recursive: true })
    cpSync(join(root, path), join(part, path))
  }
  for (const path of launchers) chmodSync(join(part, path), 0o755)
  for (const name of ['LICENSE', 'NOTICE']) cpSync(join(root, name), join(part, name))
  writeFileSync(join(part, 'THIRD-PARTY-NOTICES'), noticesOf(metafile))
  writeFileSync(join(part, script), code)
  rmSync(folder, { recursive: true, force: true })
  renameSync(part, folder)
  return metafile
}

/** Calls of libraries that load a .proto file when they run, by file of the library. */
const protoLoads = [
  {
    ...{ code: 'grpc-health-check/build/src/health.js', proto: 'grpc-health-check/proto/health/v1/health.proto' },
    ...{ call: "loadSync)('health/v1/health.proto', ", replacement: 'fromJSON)(PROTO, ', keepCase: true },
  },
  ...['v1', 'v1alpha'].map((version) => ({
    code: `@grpc/reflection/build/src/implementations/reflection-${version}.js`,
    proto: `@grpc/reflection/build/proto/grpc/reflection/${version}/reflection.proto`,
    ...{ call: 'loadSync(protoPath, ', replacement: 'fromJSON(PROTO, ', keepCase: false },
  })),
]

/** Puts the .proto files that libraries load into the bundle, already parsed. */
const protoFiles: Plugin = {
  name: 'proto files',
  setup({ onLoad }) {
    onLoad({ filter: /(health|reflection-v1(alpha)?)\.js$/ }, ({ path }) => {
      const load = protoLoads.find(({ code }) => path === join(root, 'node_modules', code))
      if (!load) return undefined
      const parts = readFileSync(path, 'utf8').split(load.call)
      if (parts.length !== 2) throw new Error(`${path}: the call that loads the .proto file has changed`)
      const file = join(root, 'node_modules', load.proto)
      const json = JSON.stringify(new protobuf.Root().loadSync(file, { keepCase: load.keepCase }).toJSON())
      return { contents: parts.join(load.replacement.replace('PROTO', () => json)), loader: 'js' }
    })
  },
}

/** Lets esbuild see the packages that modules load by `createRequire`, since an import would not be lazy and synchronous. */
const requires: Plugin = {
  name: 'requires',
  setup({ onLoad }) {
    onLoad({ filter: /src[\\/]api[\\/]naming[\\/](health|reflection)\.ts$/ }, ({ path }) => {
      const code = readFileSync(path, 'utf8')
      const contents = code
        .replace('const load = createRequire(import.meta.url)', '')
        .replace(/\bload\((?='[@a-z/-]+'\))/, 'require(')
      return { contents, loader: 'ts' }
    })
  },
}
