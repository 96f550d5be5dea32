/**
 * The planted mistakes: their names in the list, what each does to the training, and what its reader should see.
 * mistakes.py computes them.
 */

export const MISTAKES = {
  none: { name: "none" },
  wrong_sign: {
    name: "wrong sign",
    title: "A wrong sign",
    does: "The optimizer receives the gradient with its sign turned round, so every step goes up the loss instead of down.",
    look: "Both losses rise from the first step and do not come back. The gradients grow, and the network becomes sure of wrong answers.",
  },
  missing_mean: {
    name: "missing mean",
    title: "A missing mean",
    does: "The gradient is the sum over the batch and not its mean, so it is as many times too large as the batch has samples.",
    look: "With SGD every step is too long: the loss jumps, and a larger batch makes it worse, although it should make it calmer. With a batch of 1 nothing is wrong. Adam and RMSProp divide the size of the gradient away and hide the mistake.",
  },
  zero_initialisation: {
    name: "zero weights",
    title: "All weights start at zero",
    does: "The first weights are 0 instead of random, so all neurons of a layer compute the same and receive the same gradient.",
    look: "All squares of a layer stay alike. With tanh or ReLU the hidden layers receive no gradient at all and only the last bias moves: the answer is one colour, and the loss stays near its start.",
  },
  large_rate: {
    name: "rate too large",
    title: "A rate too large",
    does: "The learning rate is 50 times the one that is set.",
    look: "The loss jumps up and down instead of falling, or becomes infinite. Neurons with tanh become flat, and those with ReLU die: their squares turn empty and they never come back.",
  },
};
