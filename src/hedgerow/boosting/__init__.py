"""Boosting: training of trees and of the weights of label patterns."""
