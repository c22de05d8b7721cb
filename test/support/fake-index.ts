// Fake of a Python package index or a Maven repository on loopback. The test sets its answers.
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export type FakeAnswer = {
  status?: number
  headers?: Record<string, string>
  body?: string | Uint8Array | object
  /** Closes the connection instead of answering. */
  gone?: true
}

export type FakeIndex = Awaited<ReturnType<typeof startIndex>>

export async function startIndex(answers: Record<string, FakeAnswer> = {}) {
  const requests: IncomingMessage[] = []
  const server = createServer((req, res) => {
    requests.push(req)
    const { status = 200, headers = {}, body = '', gone } = answers[req.url!] ?? { status: 404 }
    if (gone) return void req.socket.destroy()
    res.writeHead(status, headers)
    res.end(typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Answers by path. The test can change them. For any other path, the answer is 404. */
    answers,
    requests,
    paths: () => requests.map(({ url }) => url!),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Project of a Python index, with one source archive for each version. */
export function projectPage(name: string, ...versions: string[]): FakeAnswer {
  const files = versions.map((version, i) => ({
    filename: `${name}-${version}.tar.gz`,
    url: `https://files.example.com/${name}-${version}.tar.gz`,
    hashes: {},
    size: 100 + i,
    'upload-time': `2026-02-0${i + 1}T10:00:00.123456Z`,
  }))
  const body = { meta: { 'api-version': '1.1' }, name, files, versions }
  return { headers: { 'content-type': 'application/vnd.pypi.simple.v1+json' }, body }
}

export function mavenMetadata(name: string, ...versions: string[]): FakeAnswer {
  const [group, artifact] = name.split(':')
  const listed = versions.map((version) => `<version>${version}</version>`).join('')
  return {
    headers: { 'content-type': 'text/xml' },
    body: `<?xml version="1.0" encoding="UTF-8"?>
<metadata>
  <groupId>${group}</groupId><artifactId>${artifact}</artifactId>
  <versioning><latest>${versions.at(-1)}</latest><versions>${listed}</versions><lastUpdated>20260201100000</lastUpdated></versioning>
</metadata>`,
  }
}
