/** Value at a path with its size. `since` is the number of the change that added the value. */
type Leaf<T> = { value: T; size: number; since: number }
type Node<T> = {
  children: Map<string, Node<T>>
  leaf: Leaf<T> | undefined
  /** Number of the newest change at this path or below it. */
  newest: number
  /** Values from before this change are hidden, at this path and below it. */
  hiddenBefore: number
  size: number
  leaves: number
}

const newNode = <T>(): Node<T> => {
  return { children: new Map(), leaf: undefined, newest: 0, hiddenBefore: 0, size: 0, leaves: 0 }
}

/**
 * Files of an image after some of its layers. The cost of a change depends on the length of its path, not on the number of files
 * that it removes. Layers can have a million changes.
 */
export class ImageTree<T> {
  readonly #root = newNode<T>()
  #now = 0
  #layerBegan = 0

  /** Size of all stored values. Hidden files may be included. */
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

  /** Removes the path and all paths below it. */
  remove(path: readonly string[]): void {
    const chain = this.#chain(path)
    if (chain) this.#cutOff(chain, path)
  }

  /** Removes a file at the path, but nothing below the path. */
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

  /** Hides files of lower layers at the path and below it. Files of the present layer stay. */
  hide(path: readonly string[]): void {
    const chain = this.#chain(path)
    if (!chain) return
    const node = chain.at(-1)!
    if (node.newest < this.#layerBegan) this.#cutOff(chain, path)
    else node.hiddenBefore = this.#layerBegan
  }

  /** Yields the visible files, folder by folder. The files of a folder come in the order in which they were added. */
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

  /** The nodes from the root to the path. Undefined if the path has no node. */
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
    // Also removes folders that are now empty.
    for (let i = path.length; i > 0; i--) {
      chain[i - 1]!.children.delete(path[i - 1]!)
      if (chain[i - 1]!.leaves > 0) break
    }
  }
}
