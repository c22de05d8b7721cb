import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readProject, readProjects, versionOfFile } from './python-index.ts'

test('reads the version in a file name, however the file name spells the name of the project', () => {
  const files: Record<string, [project: string, version: string | undefined]> = {
    'Flask-2.0.tar.gz': ['flask', '2.0'],
    'flask-2.0-py3-none-any.whl': ['flask', '2.0'],
    'flask-2.0-1-py3-none-any.whl': ['flask', '2.0'],
    'torch-2.1.0+cu121-cp310-cp310-linux_x86_64.whl': ['torch', '2.1.0+cu121'],
    'zope.interface-5.0-py2.7-linux-x86_64.egg': ['zope-interface', '5.0'],
    'zope-interface-5.0.zip': ['zope-interface', '5.0'],
    'zope_interface-5.0.tar.bz2': ['zope-interface', '5.0'],
    'pip-0.3-1.tgz': ['pip', '0.3-1'],
    'a-1-2.0.tar.gz': ['a-1', '2.0'],
    'other-2.0.tar.gz': ['flask', undefined],
    'flask-other-2.0.tar.gz': ['flask', 'other-2.0'],
    'flask2-2.0-py3-none-any.whl': ['flask', undefined],
    'flask-2.0.exe': ['flask', undefined],
    'flask-2.0.tar.gz.asc': ['flask', undefined],
    'flask-.tar.gz': ['flask', undefined],
    'flask.whl': ['flask', undefined],
    '-.zip': ['flask', undefined],
  }
  for (const [file, [project, version]] of Object.entries(files))
    assert.equal(versionOfFile(project, file), version, file)
})

test('combines the files of a version, with the spelling of the version in the index', () => {
  const file = (filename: string, size?: number, time?: string) => ({ filename, size, 'upload-time': time })
  const files = [
    file('lib-1.0-beta1.tar.gz', 10, '2026-01-02T00:00:00.000001Z'),
    file('lib-1.0b1-py3-none-any.whl', 5, '2026-01-01T00:00:00Z'),
    file('lib-2.0.tar.gz'),
    file('lib-2.0.exe', 7),
  ]
  assert.deepEqual(readProject('lib', { name: 'Lib', files, versions: ['1.0b1', '3.0'] }), {
    ecosystem: 'ECOSYSTEM_PYTHON',
    name: 'lib',
    versions: [
      {
        version: '1.0b1',
        sizeBytes: '15',
        releaseTime: '2026-01-01T00:00:00Z',
        changeTime: '2026-01-02T00:00:00.000001Z',
      },
      { version: '2.0' },
    ],
  })
  assert.deepEqual(readProject('lib', { name: 'lib', files: [] }).versions, [])
})

test('lists each project once, and names an invalid project name in the error', () => {
  assert.deepEqual(readProjects({ projects: [{ name: 'B_b' }, { name: 'a' }, { name: 'b.b' }] }), ['b-b', 'a'])
  for (const projects of [undefined, {}, [{}], [{ name: 7 }], [{ name: '../a' }], [{ name: 'a' }, null]]) {
    assert.throws(() => readProjects({ projects }), /must be/)
  }
})
