import type { ProgressLine } from "./engine/image-schema.ts";

/** How far a pull has come. */
export interface ImageProgress {
  /** As the manifest names the image. */
  image: string;
  layers: number;
  /** Unpacked, or there already. */
  layersDone: number;
  /** Totals over the layers whose size is known so far; both grow as layers start. Unit: bytes. */
  downloadedBytes: number;
  totalBytes: number;
}

interface Layer {
  done: boolean;
  current: number;
  total: number;
}

/** Adds up what the engine reports layer by layer. */
export class PullProgress {
  readonly #image: string;
  readonly #layers = new Map<string, Layer>();

  constructor(image: string) {
    this.#image = image;
  }

  add(line: ProgressLine): ImageProgress {
    // Lines about the whole image have no id, or (`Pulling from library/nginx`) the tag for an id.
    if (line.id !== "" && !line.status.startsWith("Pulling from")) this.#addLayer(line);
    const layers = [...this.#layers.values()];
    return {
      image: this.#image,
      layers: layers.length,
      layersDone: layers.filter((layer) => layer.done).length,
      downloadedBytes: layers.reduce((sum, layer) => sum + layer.current, 0),
      totalBytes: layers.reduce((sum, layer) => sum + layer.total, 0),
    };
  }

  #addLayer({ id, status, progressDetail }: ProgressLine): void {
    const layer = this.#layers.get(id) ?? { done: false, current: 0, total: 0 };
    this.#layers.set(id, layer);
    switch (status) {
      case "Downloading":
        layer.current = progressDetail.current;
        layer.total = Math.max(progressDetail.total, progressDetail.current);
        break;
      case "Download complete":
        layer.current = layer.total;
        break;
      case "Pull complete":
      case "Already exists":
        layer.current = layer.total;
        layer.done = true;
        break;
    }
  }
}
