/**
 * How the parameters move once their gradients are known: stage 2's optimizers in JavaScript.
 *
 * Each has `rate`, which may be set between steps, and step(parameters, gradients), which changes the parameters in
 * place. One belongs to one network: it keeps buffers shaped like the parameters.
 */

const zerosLike = (arrays) => arrays.map((each) => new Float64Array(each.length));

/** p -= rate * g, and with momentum v = momentum * v + g; p -= rate * v. */
export class SGD {
  constructor(rate, momentum = 0) {
    Object.assign(this, { rate, momentum, velocity: null });
  }

  step(parameters, gradients) {
    this.velocity ??= zerosLike(parameters);
    parameters.forEach((p, n) => {
      const velocity = this.velocity[n];
      for (let i = 0; i < p.length; i++) {
        velocity[i] = this.momentum * velocity[i] + gradients[n][i];
        p[i] -= this.rate * velocity[i];
      }
    });
  }
}

/** s = alpha * s + (1 - alpha) * g²; p -= rate * g / (sqrt(s) + epsilon). */
export class RMSProp {
  constructor(rate, alpha = 0.99, epsilon = 1e-8) {
    Object.assign(this, { rate, alpha, epsilon, squares: null });
  }

  step(parameters, gradients) {
    this.squares ??= zerosLike(parameters);
    parameters.forEach((p, n) => {
      const squares = this.squares[n];
      for (let i = 0; i < p.length; i++) {
        const g = gradients[n][i];
        squares[i] = this.alpha * squares[i] + (1 - this.alpha) * g * g;
        p[i] -= (this.rate * g) / (Math.sqrt(squares[i]) + this.epsilon);
      }
    });
  }
}

/** Momentum and RMSProp together, both corrected for having started at zero (Kingma & Ba 2015). */
export class Adam {
  constructor(rate, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8) {
    Object.assign(this, { rate, beta1, beta2, epsilon, steps: 0, first: null, second: null });
  }

  step(parameters, gradients) {
    this.first ??= zerosLike(parameters);
    this.second ??= zerosLike(parameters);
    this.steps += 1;
    const stepSize = this.rate / (1 - this.beta1 ** this.steps);
    const correction = Math.sqrt(1 - this.beta2 ** this.steps);
    parameters.forEach((p, n) => {
      const [m, v] = [this.first[n], this.second[n]];
      for (let i = 0; i < p.length; i++) {
        const g = gradients[n][i];
        m[i] = this.beta1 * m[i] + (1 - this.beta1) * g;
        v[i] = this.beta2 * v[i] + (1 - this.beta2) * g * g;
        p[i] -= (stepSize * m[i]) / (Math.sqrt(v[i]) / correction + this.epsilon);
      }
    });
  }
}

/** By its name on the page, a function that makes one with a learning rate. */
export const OPTIMIZERS = {
  SGD: (rate) => new SGD(rate),
  momentum: (rate) => new SGD(rate, 0.9),
  RMSProp: (rate) => new RMSProp(rate),
  Adam: (rate) => new Adam(rate),
};
