// `npm run components`: serves the page of all components of the console, for people who change them. No server of Pinfold serves
// it. Reload the page after a change.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { build } from 'esbuild'
import { consoleFonts } from './console-fonts.ts'
import { root } from './run.ts'

export const componentsPath = '/ui/~/components'

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Components</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page.css">
<script type="module" src="/page.js"></script>
</head>
<body class="components"></body>
</html>
`

const types: Record<string, string> = { js: 'text/javascript', css: 'text/css', woff2: 'font/woff2' }

/** Starts the server on a free port of this machine, or on the given one. */
export async function serveComponents(port = 0): Promise<{ url: string; server: Server }> {
  const fonts = await consoleFonts(root)
  const server = createServer(async (req, res) => {
    const name = (req.url ?? '').slice(1)
    const file = fonts[name] ?? (await readBuilt(name))
    if (req.url === componentsPath) res.setHeader('content-type', 'text/html').end(page)
    else if (file) res.setHeader('content-type', types[name.split('.').at(-1)!]!).end(file)
    else res.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

async function readBuilt(name: string): Promise<Uint8Array | undefined> {
  if (name !== 'page.js' && name !== 'page.css') return undefined
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [
      name === 'page.js'
        ? { in: 'console/components/page.tsx', out: 'page' }
        : { in: 'console/style.css', out: 'page' },
    ],
    outdir: 'out',
    bundle: true,
    write: false,
    format: 'esm',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    tsconfig: 'console/tsconfig.json',
    external: ['*.woff2'],
  })
  return outputFiles[0]!.contents
}

if (process.argv[1] === join(root, 'scripts/components.ts')) {
  const { url } = await serveComponents(8090)
  console.log(`${url}${componentsPath}`)
}
