/** Value at a path, and its size. */
type Leaf<T> = { value: T; size: number; since: number }
type Node<T> = {
  children: Map<string, Node<T>>
  leaf: Leaf<T> | undefined
  /** When the newest leaf at or below came. */
  newest: number
  /** Leaves from before this point are hidden, at this path and below. */
  hiddenBefore: number
  size: number
  leaves: number
}

const newNode = <T>(): Node<T> => {
  return { children: new Map(), leaf: undefined, newest: 0, hiddenBefore: 0, size: 0, leaves: 0 }
}

/**
 * Tree of files after some layers of an image. A change costs as much as its path is long, however many files it removes, since
 * layers may have a million changes.
 */
export class ImageTree<T> {
  readonly #root = newNode<T>()
  #now = 0
  #layerBegan = 0

  /** Size of all that is kept. Files that a layer has hidden beside its own files may still count. */
  get size(): number {
    return this.#root.size
  }
  get leaves(): number {
    return this.#root.leaves
  }

  nextLayer(): void {
    this.#layerBegan = ++this.#now
  }

  set(path: readonly string[], value: T, size: number): void {
    this.remove(path)
    const since = ++this.#now
    let node = this.#root
    const chain = [node]
    for (const name of path) {
      const next: Node<T> = node.children.get(name) ?? newNode()
      node.children.set(name, next)
      chain.push(next)
      node = next
    }
    node.leaf = { value, size, since }
    for (const one of chain) {
      one.newest = since
      one.size += size
      one.leaves++
    }
  }

  /** Removes the path and all below it. */
  remove(path: readonly string[]): void {
    const chain = this.#chain(path)
    if (chain) this.#cutOff(chain, path)
  }

  /** A file at the path, and nothing below it. */
  removeFile(path: readonly string[]): void {
    const chain = this.#chain(path)
    const { leaf } = chain?.at(-1) ?? {}
    if (!chain || !leaf) return
    chain.at(-1)!.leaf = undefined
    for (const one of chain) {
      one.size -= leaf.size
      one.leaves--
    }
  }

  /** Hides entries of lower layers at the path and below it; entries of this layer stay. */
  hide(path: readonly string[]): void {
    const chain = this.#chain(path)
    if (!chain) return
    const node = chain.at(-1)!
    if (node.newest < this.#layerBegan) this.#cutOff(chain, path)
    else node.hiddenBefore = this.#layerBegan
  }

  /** Yields paths in order of their folders, and entries of a folder in the order of arrival. */
  *visible(): Generator<[path: string, value: T]> {
    const left: { path: string; node: Node<T>; before: number }[] = [{ path: '', node: this.#root, before: 0 }]
    for (let one = left.pop(); one; one = left.pop()) {
      const before = Math.max(one.before, one.node.hiddenBefore)
      if (one.node.leaf && one.node.leaf.since >= before) yield [one.path, one.node.leaf.value]
      for (const [name, node] of [...one.node.children].reverse()) {
        left.push({ path: one.path === '' ? name : `${one.path}/${name}`, node, before })
      }
    }
  }

  /** The nodes from the root to the path; undefined when nothing is kept there. */
  #chain(path: readonly string[]): Node<T>[] | undefined {
    let node: Node<T> | undefined = this.#root
    const chain: Node<T>[] = [node]
    for (const name of path) {
      node = node.children.get(name)
      if (!node) return undefined
      chain.push(node)
    }
    return chain
  }

  #cutOff(chain: readonly Node<T>[], path: readonly string[]): void {
    const { size, leaves } = chain.at(-1)!
    for (const one of chain) {
      one.size -= size
      one.leaves -= leaves
    }
    if (path.length === 0) {
      this.#root.children.clear()
      this.#root.leaf = undefined
      return
    }
    // With the folders that have become empty by it.
    for (let i = path.length; i > 0; i--) {
      chain[i - 1]!.children.delete(path[i - 1]!)
      if (chain[i - 1]!.leaves > 0) break
    }
  }
}
