import assert from 'node:assert/strict'
import { test } from 'node:test'
import { randomFrom } from '../../../test/support/random.ts'
import { ImageTree } from './image-tree.ts'

/** Simple implementation for comparison: one map of all files, searched completely for each path. */
class Naive {
  readonly files = new Map<string, { value: number; layer: number }>()
  #layer = 0

  nextLayer(): void {
    this.#layer++
  }
  set(path: readonly string[], value: number, _size: number): void {
    this.remove(path)
    this.files.set(path.join('/'), { value, layer: this.#layer })
  }
  remove(path: readonly string[]): void {
    for (const one of this.#below(path)) this.files.delete(one)
  }
  removeFile(path: readonly string[]): void {
    this.files.delete(path.join('/'))
  }
  hide(path: readonly string[]): void {
    for (const one of this.#below(path)) if (this.files.get(one)!.layer < this.#layer) this.files.delete(one)
  }
  #below(path: readonly string[]): string[] {
    const name = path.join('/')
    return [...this.files.keys()].filter((one) => name === '' || one === name || one.startsWith(`${name}/`))
  }
}

test('keeps the same files as applying the layers to a plain list of files', () => {
  const random = randomFrom(54)
  for (let round = 0; round < 300; round++) {
    const [tree, naive] = [new ImageTree<number>(), new Naive()]
    for (let step = 0; step < 60; step++) {
      const path = Array.from({ length: random.below(4) }, () => 'abc'[random.below(3)]!)
      const kind = random.below(10)
      for (const one of [tree, naive] as const) {
        if (kind < 4 && path.length > 0) one.set(path, step, 1)
        else if (kind < 6) one.hide(path)
        else if (kind < 7 && path.length > 0) one.remove(path)
        else if (kind < 8 && path.length > 0) one.removeFile(path)
        else if (kind === 8) one.nextLayer()
      }
      const [left, expected] = [
        new Map(tree.visible()),
        new Map([...naive.files].map(([name, { value }]) => [name, value])),
      ]
      assert.deepEqual(new Map([...left].sort()), new Map([...expected].sort()), `round ${round}, step ${step}`)
      assert.ok(tree.leaves >= left.size && tree.size === tree.leaves)
    }
  }
})

test('does not count paths that a whiteout removed', () => {
  const tree = new ImageTree<string>()
  tree.nextLayer()
  tree.set(['a', 'b'], 'x', 5)
  tree.set(['a', 'c'], 'y', 7)
  assert.deepEqual([tree.size, tree.leaves], [12, 2])
  tree.nextLayer()
  tree.hide(['a'])
  assert.deepEqual([tree.size, tree.leaves, [...tree.visible()]], [0, 0, []])
})
