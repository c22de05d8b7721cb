import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readChallenges } from './challenges.ts'

const bearer = ['bearer', { realm: 'https://r.example/token', service: 's' }]
const cases: [header: string, challenges: unknown[]][] = [
  ['', []],
  ['Bearer realm="https://r.example/token",service="s"', [bearer]],
  ['Basic realm="r", Bearer realm="https://r.example/token",service="s"', [['basic', { realm: 'r' }], bearer]],
  ['BEARER Realm = "https://r.example/token" , service=s, Basic realm="r"', [bearer, ['basic', { realm: 'r' }]]],
  ['Bearer \t realm  =  "https://r.example/token" ,  service \t=  s', [bearer]],
  ['Basic realm="a \\"b\\", Bearer realm=c"', [['basic', { realm: 'a "b", Bearer realm=c' }]]],
  ['Basic', [['basic', {}]]],
]

for (const [header, challenges] of cases) {
  test(`reads the challenges of ${header || 'no header'}`, () => {
    const read = readChallenges(header).map(({ scheme, parameters }) => [scheme, Object.fromEntries(parameters)])
    assert.deepEqual(read, challenges)
  })
}
