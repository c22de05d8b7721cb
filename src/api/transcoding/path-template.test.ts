import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileTemplate } from './path-template.ts'

test('matches variables of a path template from both ends of the path', () => {
  const cases: [template: string, path: string, expected: Record<string, string> | undefined][] = [
    ['/a/b/c', '/a/b/c', {}],
    ['/a/b/c', '/a/b/c/', undefined],
    ['/a/b/{x}', '/a/b/1', { x: '1' }],
    ['/a/b/{x}', '/a/b/', undefined],
    ['/a/b/{x}/c/{y=*}', '/a/b/1/c/2', { x: '1', y: '2' }],
    ['/a/b/{x}/c/{y=*}', '/a/b/1/2/c/2', undefined],
    ['/a/b/{x=**}', '/a/b', { x: '' }],
    ['/a/b/{x=**}', '/a/b/', { x: '' }],
    ['/a/b/{x=**}', '/a/bc', undefined],
    ['/a/b/{x.y=**}', '/a/b/1/2', { 'x.y': '1/2' }],
    ['/a/b/{x=**}/c/{y}/d', '/a/b/1/2/c/3/d', { x: '1/2', y: '3' }],
    ['/a/b/{x=**}/c/{y}/d', '/a/b/c/3/d', { x: '', y: '3' }],
    ['/a/b/{x=**}/c/{y}/d', '/a/bc/3/d', undefined],
    ['/a/b/{x=**}/c/{y}/d', '/a/b/c/d', undefined],
    ['/a/b/{x=**}:go', '/a/b/1:go', { x: '1' }],
    ['/a/b/{x=**}:go', '/a/b:go', { x: '' }],
    ['/a/b/{x=**}:go', '/a/b/1:gone', undefined],
    ['/a/b/{x=**}:go', '/a/b', undefined],
    ['/a/b:go', '/a/b:go', {}],
  ]
  for (const [template, path, expected] of cases) {
    const variables = compileTemplate(template).match(path)
    assert.deepEqual(variables && Object.fromEntries(variables), expected, `${template} ${path}`)
  }
})

test('refuses an unsupported path template', () => {
  for (const template of [
    '',
    'a',
    '/',
    '/a/{x',
    '/a/{x=a/*}',
    '/a/{x}/{y=**}',
    '/a/{x=**}/{y=**}',
    '/a//b',
    '/a/*',
    '/a b',
  ]) {
    assert.throws(() => compileTemplate(template), /unsupported template/, template)
  }
})
